//! The keys of a file's first object, by which formats are told apart.

use crate::ingest::json::{Bad, Kind, Scanner};

/// Keys looked at; a row of a trace has fewer.
const MAX_KEYS: usize = 256;

/// The keys of the first object, as far as the first bytes reach. Those of an object `event` are named `event.KEY`.
#[derive(Debug, Default)]
pub(super) struct Head {
    keys: Vec<(String, Kind, String)>,
}

impl Head {
    /// Looks at the first bytes of a file; anything but an object has no keys.
    pub(super) fn of(head: &[u8]) -> Self {
        let mut keys = Self::default();
        let mut scanner = Scanner::new(head, head.len());
        // The head may end in the middle of a value: what was seen until then counts.
        let _ = keys.take(&mut scanner, "");
        keys
    }

    fn take(&mut self, scanner: &mut Scanner<'_>, above: &str) -> Result<bool, Bad> {
        scanner.pairs(|key, scanner| {
            let kind = scanner.kind()?;
            let nested = above.is_empty() && key == "event" && kind == Kind::Object;
            self.keys.push((format!("{above}{key}"), kind, String::new()));
            match kind {
                Kind::Object if nested => {
                    self.take(scanner, "event.")?;
                }
                Kind::Text => {
                    let text = scanner.text()?.into_owned();
                    if let Some(last) = self.keys.last_mut() {
                        last.2 = text;
                    }
                }
                _ => scanner.skip()?,
            }
            Ok(self.keys.len() < MAX_KEYS)
        })
    }

    pub(super) fn has(&self, key: &str) -> bool {
        self.keys.iter().any(|(known, ..)| known == key)
    }

    /// Whether the key holds a value of that kind.
    pub(super) fn is(&self, key: &str, kind: Kind) -> bool {
        self.keys.iter().any(|(known, of, _)| known == key && *of == kind)
    }

    /// The text under a key.
    pub(super) fn text(&self, key: &str) -> Option<&str> {
        self.keys
            .iter()
            .find(|(known, of, _)| known == key && *of == Kind::Text)
            .map(|(.., text)| text.as_str())
    }
}

/// The version behind a schema's name (`NAME.v3`), if it is that schema.
pub(super) fn version(schema: &str, name: &str) -> Option<u64> {
    schema.strip_prefix(name)?.strip_prefix(".v")?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_as_far_as_they_reach() {
        let text = br#" {"a":1,"event":{"schema":"x","event":{"y":1}},"b":[1,2],"c":"d"}"#;
        let head = Head::of(text);
        assert!(head.has("a") && head.is("b", Kind::Array) && !head.is("a", Kind::Array));
        assert_eq!((head.text("c"), head.text("a"), head.text("event.schema")), (Some("d"), None, Some("x")));
        assert!(head.has("event.event") && !head.has("event.event.y"));
        for cut in 0..text.len() {
            Head::of(&text[..cut]);
        }
        assert!(Head::of(br#"{"a":1,"requests":[{"b":"#).is("requests", Kind::Array));
        assert!(!Head::of(b"[1]").has("a") && !Head::of(b"").has("a"));
    }

    #[test]
    fn versions_of_schemas() {
        assert_eq!(version("dynamo.request.trace.v1", "dynamo.request.trace"), Some(1));
        assert_eq!(version("dynamo.request.trace.v12", "dynamo.request.trace"), Some(12));
        assert_eq!(version("dynamo.request.trace.vx", "dynamo.request.trace"), None);
        assert_eq!(version("other.v1", "dynamo.request.trace"), None);
    }
}
