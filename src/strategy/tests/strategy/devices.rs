//! Devices that this machine may or may not have. What needs one says so when it is skipped.

use crate::encoder::{Encoder, constant_gradients, named};
use stratoscope_strategy::device::kernels;
use stratoscope_strategy::{
    AsStrategy, BackendKind, DeviceSpec, MirroredStrategy, OneDeviceStrategy, Origin,
    PlacementReport, Replicas, Strategy, cuda, devices, scope, wgpu,
};

#[test]
fn the_processor_is_always_there() {
    let found = devices();
    let processor = &found[0];
    assert_eq!(
        (processor.name.as_str(), processor.backend),
        ("cpu:0", BackendKind::Flex)
    );
    assert!(processor.cores.is_some_and(|cores| cores > 0));
    assert!(
        processor.memory_bytes.is_some_and(|bytes| bytes > 1 << 28),
        "{processor}"
    );
    for device in &found {
        println!("{device}");
    }
}

/// The adapters are numbered from 0, each named and described; a software one is said to be one.
#[test]
fn adapters_are_listed() {
    let found = devices();
    let adapters: Vec<_> = found
        .iter()
        .filter(|d| d.backend == BackendKind::Wgpu)
        .collect();
    if adapters.is_empty() {
        println!("skipped: no wgpu adapter (install mesa-vulkan-drivers and libvulkan1)");
        return;
    }
    for (index, adapter) in adapters.iter().enumerate() {
        assert_eq!(adapter.name, format!("wgpu:{index}"));
        assert!(
            !adapter.description.is_empty() && !adapter.driver.is_empty(),
            "{adapter:?}"
        );
        let lavapipe = adapter.description.contains("llvmpipe");
        assert!(!lavapipe || adapter.software, "{adapter:?}");
        assert_eq!(adapter.to_string().contains("software"), adapter.software);
    }
}

#[test]
fn a_module_is_placed_on_an_adapter() {
    if !devices()
        .iter()
        .any(|device| device.backend == BackendKind::Wgpu)
    {
        println!("skipped: no wgpu adapter (install mesa-vulkan-drivers and libvulkan1)");
        return;
    }
    is_placed_on(wgpu(0));
    let kernels = kernels::compiled();
    assert!(kernels.is_some_and(|count| count > 0), "{kernels:?}");
}

#[test]
fn a_module_is_placed_on_cuda() {
    if !devices()
        .iter()
        .any(|device| device.backend == BackendKind::Cuda)
    {
        let error = OneDeviceStrategy::new(cuda(0)).expect_err("there is none");
        assert_eq!(error.code, "SC0906");
        println!("not run here: {}", error.evidence[0].value);
        return;
    }
    is_placed_on(cuda(0));
}

/// The same bits on the device, on two logical shares of it and on the processor; gradients are reduced
/// there as they are here.
fn is_placed_on(spec: DeviceSpec) {
    let one = OneDeviceStrategy::new(spec.clone()).expect("it starts");
    let strategy = MirroredStrategy::logical_on(spec.clone(), 2).expect("it has started");
    assert_eq!(strategy.replicas()[1].name, format!("{spec}/1"));
    let module = Encoder::new(1, &burn::tensor::Device::flex().autodiff());
    let names = named(&module);
    let place = |strategy: Option<Strategy>| {
        Replicas::place_under(strategy, module.clone(), &names, Origin::current()).expect("copies")
    };
    let two = place(Some(strategy.strategy()));
    let on_one = PlacementReport::of(&place(Some(one.strategy()))).expect("checksums");
    let on_two = PlacementReport::of(&two).expect("checksums");
    let on_cpu = PlacementReport::of(&place(None)).expect("checksums");
    assert_eq!(on_two.verdict(), "7 variables, equal on all 2 replicas");
    for ((one, two), cpu) in on_one
        .variables
        .iter()
        .zip(&on_two.variables)
        .zip(&on_cpu.variables)
    {
        assert_eq!(
            one.copies[0].checksum, two.copies[1].checksum,
            "{}",
            one.name
        );
        assert_eq!(
            one.copies[0].checksum, cpu.copies[0].checksum,
            "the same bits on every device"
        );
    }
    let _scope = scope::enter(&one).expect("no scope is active");
    assert_eq!(
        scope::device().expect("a device").without_autodiff(),
        one.replicas()[0].burn
    );

    let gradients = two
        .for_each_replica(vec![1.0, 2.0], |_, module, value| {
            constant_gradients(module, value)
        })
        .expect("two inputs");
    let results = two.all_reduce(gradients, &[3, 1]).expect("two of each");
    let bias = |index: usize| {
        let id = two.first().classifier.bias.as_ref().expect("it has one").id;
        let gradient = results[index].get::<1>(id).expect("it is trained");
        gradient.into_data().iter::<f32>().collect::<Vec<_>>()
    };
    // (3 · 1 + 1 · 2) / 4
    assert_eq!((bias(0), bias(1)), (vec![1.25; 3], vec![1.25; 3]));
    println!("{}", on_two.to_plain());
}
