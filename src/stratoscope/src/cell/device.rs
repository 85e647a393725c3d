//! `%device`: shows and sets the default device.

use stratoscope_diagnostics::Result;
use stratoscope_strategy::device::choice;
use stratoscope_strategy::{DeviceInfo, devices};

use crate::display::display;

/// `%device`: the devices of this machine with the default one; `%device wgpu:0`: that one from now on.
///
/// # Errors
/// SC0712 for a device that is not there, SC0907 for one that does not start; the default stays as it was.
pub fn device(asked: &str) -> Result<()> {
    if asked.is_empty() {
        display(&devices());
        return Ok(());
    }
    let choice = choice::choose(asked)?;
    let device = &choice.device;
    let name: &str = &device.name;
    let described = devices();
    let what = described.iter().find(|info| info.name == name);
    let what = what.map_or(String::new(), |info: &DeviceInfo| match info.software {
        true => format!(
            "{}, software: it computes on the processor",
            info.description
        ),
        false => info.description.clone(),
    });
    println!(
        "the default device is {name} ({what}), {}; models that exist stay where they are",
        choice.reason()
    );
    Ok(())
}

/// Called by `stratoscope doctor`, which loads this library in a process of its own: prints the default device and why
/// it is that one, in a line.
#[unsafe(no_mangle)]
pub extern "C" fn stratoscope_default_device() {
    choice::tell_by(drop);
    match choice::choice() {
        Ok(choice) => {
            let failed = choice.failures();
            let failed = failed.map(|(name, reason)| format!("; {name} did not start: {reason}"));
            let device = &choice.device;
            println!(
                "device {} ({}), {}{}",
                device.name,
                device.description,
                choice.reason(),
                failed.collect::<String>()
            );
        }
        Err(problem) => println!("refused {}", problem.one_line()),
    }
}
