//! Words of names, as people see them: `listAPIKeys`, `list_api_keys` and `list-api-keys` have the same three. What a
//! word means is in `vocabulary`.

/// Words that are looked at in one text; names that people write have far fewer.
const WORDS_MAX: usize = 64;

/// One word of a name.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Word<'t> {
    /// As it is written.
    pub(crate) raw: &'t str,
    /// In lower case.
    pub(crate) lower: String,
    /// In lower case, without the ending of a plural.
    pub(crate) singular: String,
    /// Whether it is the first one, or the first behind `/`, `.`, `:` or `#`: where a namespace ends.
    pub(crate) opens: bool,
}

/// The words of a text: cut where letters and digits end, and where a capital begins another word.
///
/// Linear in the text; at most [`WORDS_MAX`] words are found.
pub(crate) fn words(text: &str) -> Vec<Word<'_>> {
    let mut words = Vec::new();
    let mut start: Option<usize> = None;
    let mut opens = true;
    let mut before: Option<char> = None;
    let mut characters = text.char_indices().peekable();
    while let Some((at, character)) = characters.next() {
        if words.len() >= WORDS_MAX {
            return words;
        }
        if !character.is_alphanumeric() {
            take(text, &mut start, at, &mut opens, &mut words);
            opens |= matches!(character, '/' | '.' | ':' | '#');
            before = None;
            continue;
        }
        let next_is_small = characters.peek().is_some_and(|(_, next)| next.is_lowercase());
        let is_edge =
            character.is_uppercase() && before.is_some_and(|before| !before.is_uppercase() || next_is_small);
        if is_edge {
            take(text, &mut start, at, &mut opens, &mut words);
        }
        start.get_or_insert(at);
        before = Some(character);
    }
    take(text, &mut start, text.len(), &mut opens, &mut words);
    words
}

fn take<'t>(
    text: &'t str,
    start: &mut Option<usize>,
    end: usize,
    opens: &mut bool,
    words: &mut Vec<Word<'t>>,
) {
    let Some(raw) = start.take().and_then(|start| text.get(start..end)) else {
        return;
    };
    let lower = raw.to_lowercase();
    words.push(Word {
        raw,
        singular: singular(&lower),
        lower,
        opens: std::mem::take(opens),
    });
}

/// A word without the ending of an English plural, where it has one.
fn singular(word: &str) -> String {
    if word.len() <= 3 || word.ends_with("ss") || word.ends_with("us") || word.ends_with("is") {
        return word.to_owned();
    }
    if let Some(stem) = word.strip_suffix("ies") {
        return format!("{stem}y");
    }
    let is_long = ["sses", "xes", "ches", "shes"]
        .iter()
        .any(|ending| word.ends_with(ending));
    let ending = if is_long { "es" } else { "s" };
    word.strip_suffix(ending).unwrap_or(word).to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_every_style_have_the_words_that_people_see() {
        for (text, expected) in [
            ("listAPIKeys", "list api keys"),
            ("list_api_keys", "list api keys"),
            ("list-api-keys", "list api keys"),
            ("GET_DeleteSnapshot", "get delete snapshot"),
            ("getPlaylist", "get playlist"),
            ("budget", "budget"),
            ("HTTPServerV2", "http server v2"),
            ("/v1/users/{user_id}", "v1 users user id"),
            ("users.admin.invite", "users admin invite"),
            ("größeÄndern", "größe ändern"),
            ("", ""),
            ("___", ""),
        ] {
            let found: Vec<String> = words(text).into_iter().map(|word| word.lower).collect();
            assert_eq!(found.join(" "), expected, "{text}");
        }
    }

    #[test]
    fn a_word_opens_at_the_start_and_behind_a_namespace() {
        let opening = |text: &'static str| -> Vec<&'static str> {
            words(text)
                .into_iter()
                .filter(|word| word.opens)
                .map(|word| word.raw)
                .collect()
        };
        assert_eq!(opening("repos/create-fork"), ["repos", "create"]);
        assert_eq!(opening("users.admin.setActive"), ["users", "admin", "set"]);
        assert_eq!(opening("get_delete_status"), ["get"]);
        assert_eq!(opening("/{}{}/x"), ["x"]);
    }

    #[test]
    fn plurals_lose_their_ending_and_other_words_do_not() {
        for (word, expected) in [
            ("keys", "key"),
            ("boxes", "box"),
            ("policies", "policy"),
            ("batches", "batch"),
            ("access", "access"),
            ("status", "status"),
            ("analysis", "analysis"),
            ("sms", "sms"),
            ("key", "key"),
        ] {
            assert_eq!(singular(word), expected);
        }
    }

    #[test]
    fn words_are_found_up_to_the_limit_and_not_past_it() {
        let text = |count: usize| vec!["a"; count].join("_");
        assert_eq!(words(&text(WORDS_MAX)).len(), WORDS_MAX);
        assert_eq!(words(&text(WORDS_MAX + 1)).len(), WORDS_MAX);
        assert_eq!(words(&text(100_000)).len(), WORDS_MAX);
    }
}
