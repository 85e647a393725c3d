//! `%profile`: which version of TensorFlow the cards quote.

use stratoscope_diagnostics::Profile;
use stratoscope_session::DiagnosticSettings;

use super::request::ProfileRequest;

/// Shows the profile, or sets it. Returns what to show.
pub fn answer(request: ProfileRequest, settings: &mut DiagnosticSettings) -> String {
    match request {
        ProfileRequest::Show => {}
        ProfileRequest::Off => settings.profile = None,
        ProfileRequest::Set(profile) => settings.profile = Some(profile),
    }
    match settings.profile {
        Some(profile) => format!(
            "profile {}: cards add the words of {}; `%profile off` ends it",
            profile.name(),
            profile.title()
        ),
        None => format!("no profile: cards quote no version; there are {}", all()),
    }
}

/// The profiles that exist.
pub fn all() -> String {
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
        let mut answer = |request| {
            let text = answer(request, &mut settings);
            (text, settings.profile)
        };
        let (text, profile) = answer(ProfileRequest::Show);
        assert!(text.contains("no profile") && profile.is_none(), "{text}");
        let (text, profile) = answer(ProfileRequest::Set(Profile::Tf23));
        assert!(text.contains("TensorFlow 2.3"), "{text}");
        assert_eq!(profile, Some(Profile::Tf23));
        assert_eq!(answer(ProfileRequest::Off).1, None);
        assert!(super::super::wrong::unknown_profile("tf-9").contains("`keras-3`"));
    }
}
