//! The queries of sources, as far as the configuration can judge them: one statement that reads, and its placeholders.
//!
//! The database has the last word on a query, and runs it in a read-only session. This finds the slips earlier.

use std::collections::BTreeSet;

use crate::fault::{Wrong, wrong};
use crate::text;

/// The longest query in bytes.
const QUERY_BYTES_MAX: usize = 8_192;

/// A value that a query is given in place of `$1`, `$2`, ….
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Bind {
    /// The id of the thing that the call names.
    ResourceId,
    /// Who calls.
    PrincipalSubject,
    /// The organisation of the caller.
    PrincipalTenant,
    /// The client program of the caller.
    PrincipalClient,
    /// Who vouches for the caller.
    PrincipalIssuer,
    /// A top-level argument of the call.
    Argument(String),
}

impl Bind {
    pub(crate) fn parse(text: &str) -> Result<Self, Wrong> {
        match text {
            "resource.id" => Ok(Self::ResourceId),
            "principal.subject" => Ok(Self::PrincipalSubject),
            "principal.tenant" => Ok(Self::PrincipalTenant),
            "principal.client" => Ok(Self::PrincipalClient),
            "principal.issuer" => Ok(Self::PrincipalIssuer),
            _ => {
                let name = text
                    .strip_prefix("arguments.")
                    .ok_or_else(|| wrong("is nothing that a query can be given"))?;
                text::argument(name)?;
                Ok(Self::Argument(name.to_owned()))
            }
        }
    }
}

/// How many placeholders a query has: it names each of `$1` to `$n` at least once.
pub(crate) fn placeholders(text: &str) -> Result<usize, Wrong> {
    if text.len() > QUERY_BYTES_MAX {
        return Err(wrong(format!(
            "has {} bytes; at most {QUERY_BYTES_MAX} are allowed",
            text.len()
        )));
    }
    let start: String = text
        .trim_start()
        .chars()
        .take_while(char::is_ascii_alphabetic)
        .collect();
    if !(start.eq_ignore_ascii_case("select") || start.eq_ignore_ascii_case("with")) {
        return Err(wrong("does not begin with SELECT or WITH"));
    }
    let found = Scan {
        rest: text,
        numbers: BTreeSet::new(),
        question: false,
        ended: false,
    }
    .run()?;
    let count = found.numbers.len();
    if let Some(gap) = (1..)
        .zip(&found.numbers)
        .find_map(|(expected, number)| (expected != *number).then_some(expected))
    {
        return Err(wrong(format!("has placeholders past ${gap}, and no ${gap}")));
    }
    if count == 0 && found.question {
        return Err(wrong("has a `?`").hint("placeholders are $1, $2, …"));
    }
    Ok(count)
}

/// One pass over a query that knows strings, quoted names and comments from the rest.
struct Scan<'q> {
    rest: &'q str,
    numbers: BTreeSet<usize>,
    question: bool,
    ended: bool,
}

impl<'q> Scan<'q> {
    fn run(mut self) -> Result<Self, Wrong> {
        while let Some(next) = self.rest.chars().next() {
            let body = self.rest.get(next.len_utf8()..).unwrap_or_default();
            match next {
                '\'' | '"' | '`' => {
                    self.rest = behind(body, &next.to_string())
                        .ok_or_else(|| wrong(format!("has a {next} that is not closed")))?
                }
                '-' if body.starts_with('-') => self.rest = behind(body, "\n").unwrap_or_default(),
                '/' if body.starts_with('*') => {
                    let inside = body.get(1..).unwrap_or_default();
                    self.rest =
                        behind(inside, "*/").ok_or_else(|| wrong("has a comment that is not closed"))?;
                }
                '$' => self.dollar(body)?,
                c if c.is_whitespace() => self.rest = body,
                _ if self.ended => return Err(wrong("is more than one statement")),
                ';' => {
                    self.ended = true;
                    self.rest = body;
                }
                // A name may hold a dollar sign, which then begins nothing.
                c if c.is_alphanumeric() || c == '_' => {
                    self.rest =
                        body.trim_start_matches(|c: char| c.is_alphanumeric() || c == '_' || c == '$');
                }
                c => {
                    self.question |= c == '?';
                    self.rest = body;
                }
            }
        }
        Ok(self)
    }

    /// Behind a dollar sign: a placeholder, or a string of PostgreSQL's kind, `$tag$ … $tag$`.
    fn dollar(&mut self, body: &'q str) -> Result<(), Wrong> {
        let is_digit = |c: char| c.is_ascii_digit();
        if body.starts_with(is_digit) {
            let rest = body.trim_start_matches(is_digit);
            let number = body.strip_suffix(rest).and_then(|digits| digits.parse().ok());
            let number = number.filter(|number| (1..=99).contains(number));
            self.numbers
                .insert(number.ok_or_else(|| wrong("has a placeholder that is not $1 to $99"))?);
            self.rest = rest;
            return Ok(());
        }
        let rest = body.trim_start_matches(|c: char| c.is_alphanumeric() || c == '_');
        let tag = body.strip_suffix(rest).unwrap_or_default();
        let inside = rest
            .strip_prefix('$')
            .ok_or_else(|| wrong("has a `$` that is no placeholder"))?;
        self.rest = behind(inside, &format!("${tag}$"))
            .ok_or_else(|| wrong(format!("has a ${tag}$ that is not closed")))?;
        Ok(())
    }
}

/// What follows the first `end` in `text`.
fn behind<'t>(text: &'t str, end: &str) -> Option<&'t str> {
    text.split_once(end).map(|(_, rest)| rest)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn placeholders_are_counted_outside_of_strings_names_and_comments() {
        for (text, expected) in [
            ("select tenant from invoice where id = $1", 1),
            (
                "SELECT count(*) > 0 FROM member WHERE tenant=$1 AND subject=$2;",
                2,
            ),
            (
                "with x as (select $2) select * from x where a = $1 or b = $1 ; -- done",
                2,
            ),
            ("select 1", 0),
            (
                "select '$1 ''$2' from \"a$3\" where x = `$4` -- $5\n and y = $1 /* $6 */",
                1,
            ),
            ("select $tag$ $9 $tag$, $$ $8 $$ where a = $1", 1),
            ("select a$2 from t where b = $1", 1),
            ("select data ? 'key' from t where b = $1", 1),
        ] {
            assert_eq!(placeholders(text), Ok(expected), "{text}");
        }
    }

    #[test]
    fn a_query_is_one_statement_that_reads() {
        for (text, problem) in [
            ("", "does not begin with SELECT or WITH"),
            ("delete from invoice", "does not begin with SELECT or WITH"),
            ("selection", "does not begin with SELECT or WITH"),
            ("select 1; drop table invoice", "is more than one statement"),
            ("select 1;;", "is more than one statement"),
            ("select $2", "has placeholders past $1, and no $1"),
            ("select $1, $3", "has placeholders past $2, and no $2"),
            ("select $0", "has a placeholder that is not $1 to $99"),
            ("select $100", "has a placeholder that is not $1 to $99"),
            (
                "select $99999999999999999999999",
                "has a placeholder that is not $1 to $99",
            ),
            ("select $id", "has a `$` that is no placeholder"),
            ("select ?", "has a `?`"),
            ("select 'a", "has a ' that is not closed"),
            ("select /* a", "has a comment that is not closed"),
            ("select $a$ x", "has a $a$ that is not closed"),
        ] {
            assert_eq!(placeholders(text).unwrap_err().problem, problem, "{text}");
        }
        let long = |length: usize| format!("select '{}'", "a".repeat(length - 9));
        assert_eq!(placeholders(&long(QUERY_BYTES_MAX)), Ok(0));
        assert!(placeholders(&long(QUERY_BYTES_MAX + 1)).is_err());
    }

    #[test]
    fn bound_values_come_from_a_fixed_set() {
        for text in [
            "resource.id",
            "principal.subject",
            "principal.tenant",
            "principal.client",
            "principal.issuer",
            "arguments.invoiceId",
        ] {
            assert!(Bind::parse(text).is_ok(), "{text}");
        }
        for text in [
            "",
            "resource.owner",
            "principal.roles",
            "arguments",
            "arguments.",
            "arguments.a b",
            "env:X",
            "Resource.id",
        ] {
            assert!(Bind::parse(text).is_err(), "{text}");
        }
    }
}
