//! Releases of engines: `0.33.0`, and prefixes of them.

use crate::error::{Error, Result};
use std::fmt;

/// A release number, compared part by part.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Release(pub u16, pub u16, pub u16);

impl Release {
    /// The newest of the `known` releases that `text` names: in full, by a prefix of its parts (`0.33`), or,
    /// with no text, the newest of all.
    ///
    /// # Errors
    /// [`Error::Config`] that lists the known ones.
    pub fn resolve(engine: &str, text: Option<&str>, known: &[Self]) -> Result<Self> {
        let newest = match text {
            None => known.iter().max(),
            Some(text) => parts(text)
                .and_then(|wanted| known.iter().filter(|release| release.starts_with(&wanted)).max()),
        };
        newest.copied().ok_or_else(|| {
            let list: Vec<String> = known.iter().map(|release| format!("{engine}@{release}")).collect();
            Error::config(
                format!("no profile {engine}@{}", text.unwrap_or_default()),
                format!("known releases: {}; a prefix names the newest of its releases", list.join(", ")),
            )
        })
    }

    fn starts_with(self, wanted: &[u16]) -> bool {
        [self.0, self.1, self.2].starts_with(wanted)
    }
}

impl fmt::Display for Release {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}.{}", self.0, self.1, self.2)
    }
}

/// One to three numbers between points.
fn parts(text: &str) -> Option<Vec<u16>> {
    let parts: Vec<u16> = text.split('.').map(|part| part.parse().ok()).collect::<Option<_>>()?;
    (parts.len() <= 3).then_some(parts)
}

#[cfg(test)]
mod tests {
    use super::*;

    const KNOWN: &[Release] = &[Release(0, 3, 9), Release(0, 33, 0), Release(0, 33, 2), Release(0, 30, 0)];

    fn resolved(text: Option<&str>) -> Option<Release> {
        Release::resolve("vllm", text, KNOWN).ok()
    }

    #[test]
    fn a_prefix_names_the_newest_of_its_releases() {
        assert_eq!(resolved(Some("0.33")), Some(Release(0, 33, 2)));
        assert_eq!(resolved(Some("0.33.0")), Some(Release(0, 33, 0)));
        assert_eq!(resolved(Some("0.3")), Some(Release(0, 3, 9)));
        assert_eq!(resolved(Some("0")), Some(Release(0, 33, 2)));
        assert_eq!(resolved(None), Some(Release(0, 33, 2)));
    }

    #[test]
    fn others_are_refused_with_the_known_ones() {
        for text in ["9.9", "0.33.0.1", "", "0.", "latest", "-1"] {
            let Err(Error::Config { message, hint }) = Release::resolve("vllm", Some(text), KNOWN) else {
                panic!("{text} was taken")
            };
            assert_eq!(message, format!("no profile vllm@{text}"));
            assert!(hint.contains("vllm@0.33.2"));
        }
    }
}
