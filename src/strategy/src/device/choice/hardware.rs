//! Whether the machine can have a GPU at all, without starting a driver: on Linux every GPU has a device file.

/// Why there can be no GPU; `None` where there can be one. Only Linux is asked: elsewhere the graphics interface is
/// part of the system and starts at once.
pub(super) fn none() -> Option<String> {
    #[cfg(target_os = "linux")]
    {
        none_in(std::path::Path::new("/dev"))
    }
    #[cfg(not(target_os = "linux"))]
    {
        None
    }
}

/// The beginnings of the names of GPUs' device files: NVIDIA's own driver and its modules for Jetson, WSL's, AMD's
/// compute driver, and the drivers of Arm, Qualcomm and Imagination outside of `dri`.
#[cfg(target_os = "linux")]
const FILES: [&str; 8] = [
    "nvidia", "nvhost", "nvgpu", "dxg", "kfd", "mali", "kgsl", "pvr",
];

#[cfg(target_os = "linux")]
fn none_in(folder: &std::path::Path) -> Option<String> {
    let names = |folder: &std::path::Path| -> Vec<String> {
        let entries = std::fs::read_dir(folder).into_iter().flatten().flatten();
        let names = entries.map(|entry| entry.file_name().to_string_lossy().into_owned());
        names.collect()
    };
    let is_gpu = |name: &String| FILES.iter().any(|file| name.starts_with(file));
    let renders = |name: &String| name.starts_with("renderD");
    let found = names(&folder.join("dri")).iter().any(renders) || names(folder).iter().any(is_gpu);
    (!found).then(|| {
        "no GPU was found: there is no device file of one, such as /dev/dri/renderD128".to_owned()
    })
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use super::*;

    #[test]
    fn a_device_file_is_a_gpu() {
        let folder = std::env::temp_dir().join(format!("gpu-files-{}", std::process::id()));
        let dri = folder.join("dri");
        std::fs::create_dir_all(&dri).expect("a folder");
        let make = |path: std::path::PathBuf| std::fs::write(path, "").expect("a file");
        make(folder.join("null"));
        make(dri.join("card0")); // a display without a GPU
        assert!(none_in(&folder).is_some_and(|why| why.contains("no GPU")));
        make(dri.join("renderD128"));
        assert_eq!(none_in(&folder), None);
        std::fs::remove_dir_all(&dri).expect("it is there");
        make(folder.join("nvidia0"));
        assert_eq!(none_in(&folder), None);
        std::fs::remove_dir_all(&folder).expect("it is there");
    }
}
