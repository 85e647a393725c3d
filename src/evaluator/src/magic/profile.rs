//! `%profile`: which version of TensorFlow the cards quote.

use stratoscope_diagnostics::{Profile, check};

use stratoscope_session::DiagnosticSettings;

/// Shows the profile, or sets it: a name, or `off`. Returns what to say.
///
/// # Errors
/// There is no such profile: what to say then.
pub fn answer(asked: &str, settings: &mut DiagnosticSettings) -> Result<String, String> {
    match asked {
        "" => {}
        "off" | "none" => settings.profile = None,
        name => match Profile::parse(name) {
            Some(profile) => settings.profile = Some(profile),
            None => {
                let names = Profile::ALL.map(|profile| profile.name());
                let meant = check::suggest::similar(name, names).first().cloned();
                let meant = meant.map_or(String::new(), |it| format!("; did you mean `{it}`?"));
                return Err(format!(
                    "there is no profile `{name}`; there are {}{meant}",
                    all()
                ));
            }
        },
    }
    Ok(match settings.profile {
        Some(profile) => format!(
            "profile {}: cards add the words of {}; `%profile off` ends it",
            profile.name(),
            profile.title()
        ),
        None => format!("no profile: cards quote no version; there are {}", all()),
    })
}

fn all() -> String {
    Profile::ALL
        .map(|profile| format!("`{}`", profile.name()))
        .join(", ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_profile_is_set_shown_and_ended() {
        let mut settings = DiagnosticSettings::default();
        assert!(answer("", &mut settings).is_ok_and(|told| told.contains("no profile")));
        assert!(answer("tf-2.3", &mut settings).is_ok_and(|told| told.contains("TensorFlow 2.3")));
        assert_eq!(settings.profile, Some(Profile::Tf23));
        let refused = answer("tf-9", &mut settings).expect_err("no such version");
        assert!(refused.contains("`keras-3`"), "{refused}");
        assert_eq!(settings.profile, Some(Profile::Tf23), "nothing has changed");
        assert!(answer("off", &mut settings).is_ok());
        assert_eq!(settings.profile, None);
    }
}
