//! The `Link` header (RFC 8288) of an answer: the link to the next page, and whether it leads to the same operation.

use url::Url;

/// The longest header that is looked at, in bytes.
const BYTES_MAX: usize = 8 << 10;

/// The target of the first link with `rel=next`, as it is written.
pub(crate) fn next(header: &str) -> Option<String> {
    let mut rest = header.get(..header.len().min(BYTES_MAX))?;
    loop {
        let (_, after) = rest.split_once('<')?;
        let (target, after) = after.split_once('>')?;
        let (parameters, others) = parameters(after);
        if parameters.iter().any(|(name, value)| {
            name.eq_ignore_ascii_case("rel")
                && value
                    .split_ascii_whitespace()
                    .any(|rel| rel.eq_ignore_ascii_case("next"))
        }) {
            return Some(target.to_owned());
        }
        rest = others;
    }
}

/// The parameters behind one target, and what stands behind its comma.
fn parameters(text: &str) -> (Vec<(&str, String)>, &str) {
    let mut found = Vec::new();
    let mut rest = text;
    while let Some(after) = rest.trim_start().strip_prefix(';') {
        let after = after.trim_start();
        let end = after.find(['=', ';', ',']).unwrap_or(after.len());
        let (name, tail) = after.split_at(end);
        let Some(value) = tail.strip_prefix('=') else {
            rest = tail;
            continue;
        };
        let value = value.trim_start();
        let (value, tail) = match value.strip_prefix('"') {
            Some(quoted) => match quoted.split_once('"') {
                Some((value, tail)) => (value, tail),
                None => return (found, ""),
            },
            None => value.split_at(value.find([';', ',']).unwrap_or(value.len())),
        };
        found.push((name.trim(), value.trim().to_owned()));
        rest = tail;
    }
    (found, rest)
}

/// The query of a link, where it leads to the request that it came from: same scheme, host, port and path.
pub(crate) fn query_of(target: &str, request: &str) -> Option<Vec<(String, String)>> {
    let own = Url::parse(request).ok()?;
    let other = own.join(target).ok()?;
    let is_same = other.scheme() == own.scheme()
        && other.host() == own.host()
        && other.port_or_known_default() == own.port_or_known_default()
        && other.path() == own.path()
        && other.username().is_empty()
        && other.password().is_none();
    is_same.then(|| {
        other
            .query_pairs()
            .map(|(name, value)| (name.into_owned(), value.into_owned()))
            .collect()
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_next_page_is_found_among_other_links() {
        for (header, expected) in [
            ("</a?p=2>; rel=\"next\"", Some("/a?p=2")),
            (
                "</a?p=1>; rel=prev, </a?p=3>; title=\"x, <y>\"; rel=\"last next\"",
                Some("/a?p=3"),
            ),
            ("</a>; REL=NEXT", Some("/a")),
            ("</a>; rel=previous", None),
            ("</a>; title=\"rel=next\"", None),
            ("</a>", None),
            ("", None),
            ("</a; rel=next", None),
            ("<a>; rel=\"next", None),
        ] {
            assert_eq!(next(header).as_deref(), expected, "{header}");
        }
    }

    #[test]
    fn only_a_link_to_the_same_operation_has_a_query() {
        let own = "https://api.example.com/v1/rows?p=1";
        for (target, expected) in [
            ("https://api.example.com/v1/rows?p=2", true),
            ("https://api.example.com:443/v1/rows?p=2", true),
            ("/v1/rows?p=2", true),
            ("?p=2", true),
            ("http://api.example.com/v1/rows?p=2", false),
            ("https://api.example.com.evil/v1/rows?p=2", false),
            ("https://api.example.com:8443/v1/rows?p=2", false),
            ("https://u@api.example.com/v1/rows?p=2", false),
            ("//evil/v1/rows?p=2", false),
            ("/v1/rows/../admin?p=2", false),
            ("/v1/row%73?p=2", false),
            ("/v1/rows/?p=2", false),
        ] {
            assert_eq!(query_of(target, own).is_some(), expected, "{target}");
        }
        assert_eq!(
            query_of("?p=a%26b&q=", own),
            Some(vec![
                ("p".to_owned(), "a&b".to_owned()),
                ("q".to_owned(), String::new())
            ])
        );
    }

    proptest::proptest! {
        #[test]
        fn any_header_is_read_and_a_target_is_a_part_of_it(header in "[<>;,=\" a-zA-Z?/&%:.\u{fc}-]{0,200}") {
            if let Some(target) = next(&header) {
                let quoted = format!("<{target}>");
                proptest::prop_assert!(header.contains(&quoted), "{target}");
                proptest::prop_assert!(header.to_ascii_lowercase().contains("next"));
            }
        }

        #[test]
        fn the_first_link_that_is_next_is_found_whatever_the_others_say(
            links in proptest::collection::vec(
                ("/[a-z0-9?=&%,;.-]{0,12}", "(next|prev|last|next last|NEXT|nextish)", "[a-z ,;<=-]{0,8}", proptest::bool::ANY),
                0..6,
            ),
        ) {
            let written: Vec<String> = links
                .iter()
                .map(|(target, rel, title, first)| {
                    if *first {
                        format!("<{target}>; rel=\"{rel}\"; title=\"{title}\"")
                    } else {
                        format!("<{target}>;title=\"{title}\" ; rel = \"{rel}\"")
                    }
                })
                .collect();
            let is_next = |rel: &str| rel.split(' ').any(|word| word.eq_ignore_ascii_case("next"));
            let expected = links.iter().find(|(_, rel, ..)| is_next(rel)).map(|(target, ..)| target.clone());
            proptest::prop_assert_eq!(next(&written.join(", ")), expected);
        }

        #[test]
        fn no_target_leads_anywhere_but_to_the_request_itself(target in "[a-z0-9@:/?#&=%.\\\\ \u{fc}-]{0,60}") {
            const OWN: &str = "https://api.example.com/v1/rows?p=1";
            if query_of(&target, OWN).is_some() {
                let own = Url::parse(OWN).unwrap();
                let there = own.join(&target).unwrap();
                proptest::prop_assert_eq!(there.origin(), own.origin());
                proptest::prop_assert_eq!(there.path(), own.path());
                proptest::prop_assert!(there.username().is_empty() && there.password().is_none());
            }
        }
    }
}
