//! A block of content in the reader's revision: what it does not know becomes text that says so (C4).
//!
//! Unknown members are open in every revision and stay; kinds of blocks are closed in every revision and do not.

use model::{Content, Media, MediaKind, Object, Value};
use serde::ser::SerializeMap;
use serde::{Serialize, Serializer};
use serde_json::json;

use crate::revision::Revision;

/// The blocks of a reply, in a revision.
pub(crate) struct Blocks<'a>(pub(crate) &'a [Content], pub(crate) Revision);

impl Serialize for Blocks<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_seq(self.0.iter().map(|content| Block(content, self.1)))
    }
}

struct Block<'a>(&'a Content, Revision);

impl Serialize for Block<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self.0 {
            Content::Text(said) => text(serializer, said),
            Content::Media(media) => self.media(serializer, media),
            Content::Carried(block) => Carried(block, self.1).carried(serializer),
        }
    }
}

/// The messages of a prompt, in a revision.
pub(crate) struct Messages<'a>(pub(crate) &'a [Value], pub(crate) Revision);

impl Serialize for Messages<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_seq(self.0.iter().map(|message| Message(message, self.1)))
    }
}

struct Message<'a>(&'a Value, Revision);

impl Serialize for Message<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(None)?;
        for (key, value) in self.0.as_object().into_iter().flatten() {
            match value {
                Value::Object(block) if key == "content" => {
                    map.serialize_entry(key, &Carried(block, self.1))?;
                }
                _ => map.serialize_entry(key, value)?,
            }
        }
        map.end()
    }
}

/// A block of a server.
struct Carried<'a>(&'a Object, Revision);

impl Serialize for Carried<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        self.carried(serializer)
    }
}

impl Block<'_> {
    fn media<S: Serializer>(&self, serializer: S, media: &Media) -> Result<S::Ok, S::Error> {
        let kind = match media.kind {
            MediaKind::Image => "image",
            MediaKind::Audio if self.1.has_audio() => "audio",
            MediaKind::Audio => {
                return text(serializer, &not_carried(&media.media_type, media.bytes, self.1));
            }
            MediaKind::Other => {
                let resource = json!({ "uri": media.uri, "mimeType": media.media_type, "blob": media.data });
                let mut map = serializer.serialize_map(Some(2))?;
                map.serialize_entry("type", "resource")?;
                map.serialize_entry("resource", &resource)?;
                return map.end();
            }
        };
        let mut map = serializer.serialize_map(Some(3))?;
        map.serialize_entry("type", kind)?;
        map.serialize_entry("data", &media.data)?;
        map.serialize_entry("mimeType", &media.media_type)?;
        map.end()
    }
}

impl Carried<'_> {
    fn carried<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let block = self.0;
        let member = |key: &str| block.get(key).and_then(Value::as_str);
        match member("type").unwrap_or_default() {
            "text" | "image" | "resource" => self.whole(serializer),
            "audio" if self.1.has_audio() => self.whole(serializer),
            "audio" => {
                let bytes = member("data").map_or(0, |data| data.len() / 4 * 3);
                let media_type = member("mimeType").unwrap_or("audio");
                text(serializer, &not_carried(media_type, bytes, self.1))
            }
            "resource_link" if self.1.has_resource_links() => self.whole(serializer),
            "resource_link" => {
                let name = member("title").or_else(|| member("name")).unwrap_or("a resource");
                let uri = member("uri").unwrap_or_default();
                text(serializer, &format!("{name}: {uri}"))
            }
            other => {
                let other: String = other.chars().take(64).collect();
                let said = format!(
                    "the server answered with a block of kind {other:?}, which revision {} of the protocol cannot carry",
                    self.1
                );
                text(serializer, &said)
            }
        }
    }

    /// A block of a kind that the revision has: every member, but those that came with a later revision.
    fn whole<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(None)?;
        for (key, value) in self.0 {
            match key.as_str() {
                "icons" if !self.1.has_icons() => {}
                "annotations" if !self.1.has_resource_links() && value.get("lastModified").is_some() => {
                    let mut older = value.clone();
                    if let Some(annotations) = older.as_object_mut() {
                        annotations.shift_remove("lastModified");
                    }
                    map.serialize_entry(key, &older)?;
                }
                _ => map.serialize_entry(key, value)?,
            }
        }
        map.end()
    }
}

/// Whether some block says something in text in every revision.
pub(crate) fn have_text(content: &[Content]) -> bool {
    content.iter().any(|content| match content {
        Content::Text(_) => true,
        Content::Media(_) => false,
        Content::Carried(block) => block.get("type").and_then(Value::as_str) == Some("text"),
    })
}

fn text<S: Serializer>(serializer: S, said: &str) -> Result<S::Ok, S::Error> {
    let mut map = serializer.serialize_map(Some(2))?;
    map.serialize_entry("type", "text")?;
    map.serialize_entry("text", said)?;
    map.end()
}

fn not_carried(media_type: &str, bytes: usize, revision: Revision) -> String {
    let media_type: String = media_type.chars().take(128).collect();
    format!(
        "the answer is {media_type} of {bytes} bytes, which revision {revision} of the protocol cannot carry"
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    fn written(block: &Value, revision: Revision) -> Value {
        let Value::Object(block) = block.clone() else {
            panic!()
        };
        serde_json::to_value(Block(&Content::Carried(block), revision)).unwrap()
    }

    #[test]
    fn a_block_is_whole_where_its_kind_is_known_and_text_where_it_is_not() {
        let link = json!({ "type": "resource_link", "uri": "file:///a", "name": "a", "vendor": [1] });
        let audio = json!({ "type": "audio", "data": "AAAA", "mimeType": "audio/wav" });
        let image =
            json!({ "type": "image", "data": "AAAA", "mimeType": "image/png", "x": { "b": 1, "a": 2 } });
        for revision in Revision::ALL {
            assert_eq!(written(&image, revision), image);
            let has_links = revision >= Revision::V2025_06_18;
            assert_eq!(written(&link, revision) == link, has_links, "{revision}");
            if !has_links {
                assert_eq!(
                    written(&link, revision),
                    json!({ "type": "text", "text": "a: file:///a" })
                );
            }
            let has_audio = revision > Revision::V2024_11_05;
            assert_eq!(written(&audio, revision) == audio, has_audio, "{revision}");
            let unknown = written(&json!({ "type": "hologram", "data": "x" }), revision);
            assert_eq!(unknown["type"], "text");
            assert!(unknown["text"].as_str().unwrap().contains("hologram"));
        }
    }

    #[test]
    fn members_of_later_revisions_are_left_out_and_unknown_ones_stay() {
        let block = json!({
            "type": "text", "text": "a", "icons": [], "vendor": 1,
            "annotations": { "priority": 1, "lastModified": "2025-01-01T00:00:00Z" },
        });
        let old = written(&block, Revision::V2025_03_26);
        assert_eq!(
            old,
            json!({ "type": "text", "text": "a", "vendor": 1, "annotations": { "priority": 1 } })
        );
        assert_eq!(written(&block, Revision::V2026_07_28), block);
    }
}
