//! The order in which devices are tried, as a function of what was found: no device is touched here.

use crate::device::{BackendKind, DeviceInfo, DeviceSpec};

/// Why a software adapter is not the default device.
pub(super) const SOFTWARE: &str =
    "a software adapter, which computes on the processor; it is taken only where it is named";

/// What was asked for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Wanted {
    /// The best that works.
    Best,
    /// The best of a kind: `wgpu`.
    Kind(BackendKind),
    /// This one: `wgpu:1`. The name as devices have it, or as it was written where there is no such kind.
    This(String),
}

impl Wanted {
    /// Reads the text of the variable or of the magic.
    pub fn parse(text: &str) -> Self {
        let text = text.trim().to_ascii_lowercase();
        match text.as_str() {
            "" | "auto" | "best" => Self::Best,
            "cpu" => Self::Kind(BackendKind::Flex),
            "wgpu" => Self::Kind(BackendKind::Wgpu),
            "cuda" => Self::Kind(BackendKind::Cuda),
            // `wgpu(0)` is what cells write.
            _ => Self::This(
                DeviceSpec::from(text.replace('(', ":").replace(')', "").as_str()).to_string(),
            ),
        }
    }

    /// Whether it names a kind, or a device of it.
    pub fn is_of(&self, kind: BackendKind) -> bool {
        match self {
            Self::Best => false,
            Self::Kind(named) => *named == kind,
            Self::This(name) => name.split(':').next() == Some(kind.prefix()),
        }
    }

    /// Whether a device of wgpu may be meant. `gpu` is no kind, and its error lists the devices.
    pub fn may_be_wgpu(&self) -> bool {
        let says_gpu = |name: &str| name.split(':').next() == Some("gpu");
        self.is_of(BackendKind::Wgpu) || matches!(self, Self::This(name) if says_gpu(name))
    }
}

/// A device that could be taken.
#[derive(Clone, Debug)]
pub(super) struct Candidate {
    pub name: String,
    pub backend: BackendKind,
    pub software: bool,
}

impl Candidate {
    pub fn of(info: &DeviceInfo) -> Self {
        Self {
            name: info.name.clone(),
            backend: info.backend,
            software: info.software,
        }
    }
}

/// What the machine has: CUDA's devices, then wgpu's adapters, then the processor.
#[derive(Clone, Debug, Default)]
pub(super) struct Found {
    pub candidates: Vec<Candidate>,
    /// The kinds without any device, with the reason.
    pub absent: Vec<(BackendKind, String)>,
}

/// A device, or a kind of devices, that was not taken.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Passed {
    /// `cuda:0`, or `cuda` where there is none.
    pub name: String,
    pub reason: String,
    /// It was tried and did not start.
    pub failed: bool,
}

/// Which device is the default one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Decision {
    pub name: String,
    /// The devices that a strategy takes if none is named: see [`super::Choice`].
    pub alike: Vec<String>,
    pub passed: Vec<Passed>,
}

/// Decides. `start` starts a device and is called for one after the other until one works.
///
/// # Errors
/// The reason, if it is known, where what is wanted is not there.
pub(super) fn decide(
    wanted: &Wanted,
    found: &Found,
    mut start: impl FnMut(&str) -> Result<(), String>,
) -> Result<Decision, Option<String>> {
    let order = order(wanted, found)?;
    let kinds = found.absent.iter().map(|(kind, reason)| Passed {
        name: kind.prefix().to_owned(),
        reason: reason.clone(),
        failed: false,
    });
    let mut passed: Vec<Passed> = kinds.collect();
    for candidate in &order {
        match start(&candidate.name) {
            Ok(()) => {
                let tried = |name: &str| passed.iter().any(|passed| passed.name == name);
                let alike = alike(wanted, candidate, &order)
                    .into_iter()
                    .filter(|name| !tried(name));
                return Ok(Decision {
                    name: candidate.name.clone(),
                    alike: alike.collect(),
                    passed,
                });
            }
            Err(reason) => passed.push(Passed {
                name: candidate.name.clone(),
                reason,
                failed: true,
            }),
        }
    }
    // Not reached on a machine with a processor, which always starts.
    Err(Some("no device starts".to_owned()))
}

/// The candidates in the order in which they are tried.
fn order<'a>(wanted: &Wanted, found: &'a Found) -> Result<Vec<&'a Candidate>, Option<String>> {
    let all = || found.candidates.iter();
    let mut order: Vec<&Candidate> = match wanted {
        Wanted::Best => Vec::new(),
        Wanted::Kind(kind) => {
            let mut of_kind: Vec<_> = all().filter(|one| one.backend == *kind).collect();
            // Stable: hardware comes first.
            of_kind.sort_by_key(|one| one.software);
            of_kind
        }
        Wanted::This(name) => all().filter(|one| one.name == *name).collect(),
    };
    if order.is_empty() && *wanted != Wanted::Best {
        let absent = found.absent.iter().find(|(kind, _)| wanted.is_of(*kind));
        return Err(absent.map(|(_, reason)| reason.clone()));
    }
    // What does not start falls to the next best.
    let next = all().filter(|one| !one.software);
    let next: Vec<&Candidate> = next
        .filter(|one| order.iter().all(|first| first.name != one.name))
        .collect();
    order.extend(next);
    Ok(order)
}

/// The devices that a strategy takes with this default.
fn alike(wanted: &Wanted, chosen: &Candidate, order: &[&Candidate]) -> Vec<String> {
    let named = matches!(wanted, Wanted::This(name) if *name == chosen.name);
    if named || chosen.software {
        return vec![chosen.name.clone()];
    }
    let of_its_kind = |one: &&&Candidate| one.backend == chosen.backend && !one.software;
    let alike = order.iter().filter(of_its_kind);
    alike.map(|one| one.name.clone()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(devices: &[&str]) -> Found {
        let candidate = |text: &&str| {
            let (name, software) = match text.strip_suffix('*') {
                Some(name) => (name, true),
                None => (*text, false),
            };
            let backend = match name.split(':').next() {
                Some("cuda") => BackendKind::Cuda,
                Some("wgpu") => BackendKind::Wgpu,
                _ => BackendKind::Flex,
            };
            Candidate {
                name: name.to_owned(),
                backend,
                software,
            }
        };
        let candidates: Vec<Candidate> = devices.iter().map(candidate).collect();
        let kinds = [BackendKind::Cuda, BackendKind::Wgpu];
        let absent = kinds
            .into_iter()
            .filter(|kind| candidates.iter().all(|one| one.backend != *kind));
        Found {
            absent: absent
                .map(|kind| (kind, format!("no {}", kind.title())))
                .collect(),
            candidates,
        }
    }

    /// (what the machine has, `*` for software; what is asked for; what does not start; what is taken; what a
    /// strategy takes; what failed).
    type Row = (
        &'static [&'static str],
        &'static str,
        &'static [&'static str],
        &'static str,
        &'static [&'static str],
        &'static [&'static str],
    );

    const ALL: &[&str] = &["cuda:0", "cuda:1", "wgpu:0", "wgpu:1*", "cpu:0"];
    const GPU: &[&str] = &["wgpu:0", "wgpu:1", "wgpu:2*", "cpu:0"];
    const LAVAPIPE: &[&str] = &["wgpu:0*", "cpu:0"];
    const NOTHING: &[&str] = &["cpu:0"];

    const ROWS: &[Row] = &[
        (ALL, "", &[], "cuda:0", &["cuda:0", "cuda:1"], &[]),
        (ALL, "", &["cuda:0"], "cuda:1", &["cuda:1"], &["cuda:0"]),
        (
            ALL,
            "",
            &["cuda:0", "cuda:1"],
            "wgpu:0",
            &["wgpu:0"],
            &["cuda:0", "cuda:1"],
        ),
        (
            ALL,
            "",
            &["cuda:0", "cuda:1", "wgpu:0"],
            "cpu:0",
            &["cpu:0"],
            &["cuda:0", "cuda:1", "wgpu:0"],
        ),
        (ALL, "wgpu", &[], "wgpu:0", &["wgpu:0"], &[]),
        (ALL, "wgpu:1", &[], "wgpu:1", &["wgpu:1"], &[]),
        (ALL, "CUDA:1", &[], "cuda:1", &["cuda:1"], &[]),
        (ALL, "cpu", &[], "cpu:0", &["cpu:0"], &[]),
        // A kind whose first device fails goes on with its second, then with the best of all.
        (ALL, "cuda", &["cuda:0"], "cuda:1", &["cuda:1"], &["cuda:0"]),
        (
            ALL,
            "cuda:1",
            &["cuda:1"],
            "cuda:0",
            &["cuda:0"],
            &["cuda:1"],
        ),
        (GPU, "", &[], "wgpu:0", &["wgpu:0", "wgpu:1"], &[]),
        (GPU, "auto", &["wgpu:0"], "wgpu:1", &["wgpu:1"], &["wgpu:0"]),
        (GPU, "wgpu(2)", &[], "wgpu:2", &["wgpu:2"], &[]),
        // A software adapter is taken only where it is named, and never after a failure.
        (LAVAPIPE, "", &[], "cpu:0", &["cpu:0"], &[]),
        (LAVAPIPE, "wgpu", &[], "wgpu:0", &["wgpu:0"], &[]),
        (LAVAPIPE, "wgpu:0", &[], "wgpu:0", &["wgpu:0"], &[]),
        (
            LAVAPIPE,
            "wgpu",
            &["wgpu:0"],
            "cpu:0",
            &["cpu:0"],
            &["wgpu:0"],
        ),
        (
            ALL,
            "",
            &["cuda:0", "cuda:1", "wgpu:0"],
            "cpu:0",
            &["cpu:0"],
            &["cuda:0", "cuda:1", "wgpu:0"],
        ),
        (NOTHING, "", &[], "cpu:0", &["cpu:0"], &[]),
        (NOTHING, "cpu:0", &[], "cpu:0", &["cpu:0"], &[]),
    ];

    #[test]
    fn devices_of_wgpu_are_listed_for_a_gpu_of_no_kind() {
        for (text, expected) in [
            ("gpu", true),
            ("GPU:0", true),
            ("wgpu:1", true),
            ("cuda", false),
            ("cpu", false),
        ] {
            assert_eq!(Wanted::parse(text).may_be_wgpu(), expected, "{text}");
        }
    }

    #[test]
    fn the_best_that_starts_is_taken() {
        for (devices, asked, broken, taken, alike, failed) in ROWS {
            let start = |name: &str| match broken.contains(&name) {
                true => Err("broken".to_owned()),
                false => Ok(()),
            };
            let wanted = Wanted::parse(asked);
            let decision = decide(&wanted, &found(devices), start).expect("it is there");
            let row = format!("{devices:?} {asked:?} without {broken:?}");
            assert_eq!(decision.name, *taken, "{row}");
            assert_eq!(decision.alike, *alike, "{row}");
            let reported = decision.passed.iter().filter(|passed| passed.failed);
            let reported: Vec<&str> = reported.map(|passed| passed.name.as_str()).collect();
            assert_eq!(reported, *failed, "{row}");
        }
    }

    #[test]
    fn nothing_is_started_after_what_works() {
        let mut started = Vec::new();
        let start = |name: &str| {
            started.push(name.to_owned());
            match name {
                "cuda:1" => Ok(()),
                _ => Err("broken".to_owned()),
            }
        };
        let _ = decide(&Wanted::Best, &found(ALL), start);
        assert_eq!(started, ["cuda:0", "cuda:1"]);
    }

    #[test]
    fn what_is_not_there_is_an_error_with_its_reason() {
        let reason = |devices, asked| {
            let wanted = Wanted::parse(asked);
            decide(&wanted, &found(devices), |_| Ok(())).expect_err("it is not there")
        };
        assert_eq!(reason(NOTHING, "wgpu").as_deref(), Some("no wgpu"));
        assert_eq!(reason(NOTHING, "cuda:0").as_deref(), Some("no CUDA"));
        assert_eq!(reason(LAVAPIPE, "wgpu:1"), None, "there are others");
        assert_eq!(reason(ALL, "tpu"), None);
        assert_eq!(reason(ALL, "cpu:1"), None);
    }
}
