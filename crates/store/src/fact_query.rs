//! A query for one fact, read once when the configuration is loaded. It is written by the operator, not by a caller;
//! what a caller says reaches it only as a bound value. Running it is in `facts`.

use std::sync::Arc;

/// One `SELECT` with numbered placeholders, for [`crate::FactDatabase::query`].
///
/// Invariant: exactly one statement, beginning with `SELECT` or `WITH`; its placeholders are `$1` to `$n`, each used.
///
/// ```
/// let query = store::FactQuery::parse("select tenant from invoice where id = $1").unwrap();
/// assert_eq!(query.placeholders(), 1);
/// assert!(store::FactQuery::parse("delete from invoice").is_err());
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FactQuery {
    text: Arc<str>,
    placeholders: usize,
}

/// Why a text is not a query for a fact.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum FactQueryFault {
    /// Nothing, or nothing but comments.
    #[error("the query is empty; write a SELECT of one value")]
    Empty,
    /// It does something else than ask.
    #[error("the query begins with `{found}`; it must begin with SELECT or WITH")]
    NotSelect {
        /// Its first word.
        found: String,
    },
    /// More than one statement.
    #[error("the query goes on behind its `;` at byte {at}; write one statement")]
    SecondStatement {
        /// Where the semicolon is, in bytes from 0.
        at: usize,
    },
    /// A placeholder in another style.
    #[error("the query has the placeholder `{found}` at byte {at}; number them as $1, $2")]
    Placeholder {
        /// What was written.
        found: String,
        /// Where, in bytes from 0.
        at: usize,
    },
    /// A number is left out.
    #[error("the query uses ${used} but not ${missing}; number the placeholders from $1 without gaps")]
    Gap {
        /// The highest number that is used.
        used: usize,
        /// The lowest that is not.
        missing: usize,
    },
    /// A quotation, a quoted name or a comment that does not end.
    #[error("the {what} that begins at byte {at} does not end")]
    Open {
        /// What is open.
        what: &'static str,
        /// Where it begins, in bytes from 0.
        at: usize,
    },
    /// A backslash in quotation marks: PostgreSQL may take it to hide the closing mark, SQLite never does.
    #[error(
        "the quotation at byte {at} has a backslash, which not every database reads alike; write it as chr(92) or char(92)"
    )]
    Backslash {
        /// Where the quotation begins, in bytes from 0.
        at: usize,
    },
    /// A character that no SQL text has.
    #[error("the query has a NUL character at byte {at}")]
    Nul {
        /// Where, in bytes from 0.
        at: usize,
    },
    /// Too long.
    #[error("the query has {length} bytes; at most {max} are read")]
    Long {
        /// Its length in bytes.
        length: usize,
        /// The limit in bytes.
        max: usize,
    },
}

/// The most placeholders that a query can have; well above any use, well below what an engine takes.
const PLACEHOLDERS_MAX: usize = 64;

impl FactQuery {
    /// The longest query, in bytes.
    pub const BYTES_MAX: usize = 16 * 1_024;

    /// Reads a query.
    ///
    /// # Errors
    /// [`FactQueryFault`]. Texts that the two engines read differently (a backslash before a quotation mark, nested
    /// comments) are refused.
    pub fn parse(text: &str) -> Result<Self, FactQueryFault> {
        if text.len() > Self::BYTES_MAX {
            return Err(FactQueryFault::Long {
                length: text.len(),
                max: Self::BYTES_MAX,
            });
        }
        if let Some(at) = text.find('\0') {
            return Err(FactQueryFault::Nul { at });
        }
        let mut used = [false; PLACEHOLDERS_MAX];
        let mut first = None;
        let mut end = None;
        for piece in Pieces::of(text) {
            let (at, piece) = piece?;
            if let Some(at) = end {
                return Err(FactQueryFault::SecondStatement { at });
            }
            match piece {
                Piece::Word(word) => first = first.or(Some(word)),
                Piece::Semicolon => end = Some(at),
                Piece::Placeholder(number) => {
                    first = first.or(Some("$"));
                    let slot = number.checked_sub(1).and_then(|index| used.get_mut(index));
                    *slot.ok_or_else(|| FactQueryFault::Placeholder {
                        found: format!("${number}"),
                        at,
                    })? = true;
                }
                Piece::Other(sign) => first = first.or(Some(sign)),
            }
        }
        let first = first.ok_or(FactQueryFault::Empty)?;
        if !first.eq_ignore_ascii_case("select") && !first.eq_ignore_ascii_case("with") {
            return Err(FactQueryFault::NotSelect {
                found: first.chars().take(40).collect(),
            });
        }
        let placeholders = used.iter().rposition(|used| *used).map_or(0, |last| last + 1);
        match used.iter().position(|used| !used) {
            Some(gap) if gap < placeholders => Err(FactQueryFault::Gap {
                used: placeholders,
                missing: gap + 1,
            }),
            _ => Ok(Self {
                text: Arc::from(text),
                placeholders,
            }),
        }
    }

    /// How many values it must be given.
    #[must_use]
    pub const fn placeholders(&self) -> usize {
        self.placeholders
    }

    /// The query as written.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.text
    }

    pub(crate) fn shared(&self) -> Arc<str> {
        Arc::clone(&self.text)
    }
}

// === the pieces of an SQL text ===

enum Piece<'a> {
    /// An unquoted name, keyword or number.
    Word(&'a str),
    /// `$n`.
    Placeholder(usize),
    /// `;`
    Semicolon,
    /// Anything else that is not white space or comment.
    Other(&'a str),
}

/// Walks over a text, piece by piece. It knows as much SQL as it takes to tell what is inside quotation marks.
struct Pieces<'a> {
    text: &'a str,
    at: usize,
}

impl<'a> Pieces<'a> {
    const fn of(text: &'a str) -> Self {
        Self { text, at: 0 }
    }

    fn rest(&self) -> &'a str {
        self.text.get(self.at..).unwrap_or_default()
    }

    /// Moves behind the next `end`, which must come.
    fn skip_to(&mut self, end: &str, what: &'static str, from: usize) -> Result<(), FactQueryFault> {
        match self.rest().find(end) {
            Some(length) => {
                self.at += length + end.len();
                Ok(())
            }
            None => Err(FactQueryFault::Open { what, at: from }),
        }
    }

    fn word(&mut self) -> &'a str {
        let rest = self.rest();
        let length = rest.find(|c: char| !is_word(c)).unwrap_or(rest.len());
        self.at += length;
        rest.get(..length).unwrap_or_default()
    }

    fn placeholder_fault(&mut self, from: usize) -> FactQueryFault {
        self.at += 1;
        self.word();
        FactQueryFault::Placeholder {
            found: self
                .text
                .get(from..self.at)
                .unwrap_or_default()
                .chars()
                .take(40)
                .collect(),
            at: from,
        }
    }

    fn step(&mut self) -> Result<Option<(usize, Piece<'a>)>, FactQueryFault> {
        loop {
            let from = self.at;
            let rest = self.rest();
            let Some(sign) = rest.chars().next() else {
                return Ok(None);
            };
            let next = rest.get(sign.len_utf8()..).and_then(|rest| rest.chars().next());
            match (sign, next) {
                (c, _) if c.is_whitespace() => self.at += c.len_utf8(),
                ('-', Some('-')) => {
                    self.at += rest.find('\n').map_or(rest.len(), |length| length + 1);
                }
                ('/', Some('*')) => {
                    self.at += 2;
                    self.skip_to("*/", "comment", from)?;
                    // PostgreSQL nests comments and SQLite does not. Where it would matter, we read neither.
                    let comment = self.text.get(from + 2..self.at).unwrap_or_default();
                    if comment.contains("/*") {
                        return Err(FactQueryFault::Open {
                            what: "comment",
                            at: from,
                        });
                    }
                }
                ('\'' | '"' | '`', _) => {
                    let (mark, what) = match sign {
                        '\'' => ("'", "text"),
                        '"' => ("\"", "quoted name"),
                        _ => ("`", "quoted name"),
                    };
                    self.at += 1;
                    // A doubled mark is read as the end of one text and the beginning of the next, which is the same.
                    self.skip_to(mark, what, from)?;
                    let quoted = self.text.get(from..self.at).unwrap_or_default();
                    // In PostgreSQL's E'…' a backslash can hide the closing mark.
                    if quoted.contains('\\') {
                        return Err(FactQueryFault::Backslash { at: from });
                    }
                    return Ok(Some((from, Piece::Other(quoted))));
                }
                ('$', Some(c)) if c.is_ascii_digit() => {
                    self.at += 1;
                    let word = self.word();
                    return match word.parse() {
                        Ok(number) => Ok(Some((from, Piece::Placeholder(number)))),
                        Err(_) => Err(FactQueryFault::Placeholder {
                            found: format!("${}", word.chars().take(40).collect::<String>()),
                            at: from,
                        }),
                    };
                }
                ('$', _) => {
                    // PostgreSQL's $tag$ … $tag$; anything else behind a dollar is no placeholder of ours.
                    self.at += 1;
                    self.word();
                    if self.rest().starts_with('$') {
                        self.at += 1;
                        let tag = self.text.get(from..self.at).unwrap_or_default();
                        self.skip_to(tag, "text", from)?;
                        let quoted = self.text.get(from..self.at).unwrap_or_default();
                        return Ok(Some((from, Piece::Other(quoted))));
                    }
                    self.at = from;
                    return Err(self.placeholder_fault(from));
                }
                // SQLite's ?, ?1, :name and @name. Unbound they would silently be NULL.
                ('?', _) => return Err(self.placeholder_fault(from)),
                (':' | '@', Some(c)) if is_word(c) => return Err(self.placeholder_fault(from)),
                (':', Some(':')) => {
                    self.at += 2;
                    return Ok(Some((from, Piece::Other("::"))));
                }
                (';', _) => {
                    self.at += 1;
                    return Ok(Some((from, Piece::Semicolon)));
                }
                (c, _) if is_word(c) => {
                    // Inside a name both engines take a dollar as part of it: `a$1` is no placeholder.
                    let length = rest.find(|c: char| !is_word(c) && c != '$').unwrap_or(rest.len());
                    self.at += length;
                    return Ok(Some((from, Piece::Word(rest.get(..length).unwrap_or_default()))));
                }
                (c, _) => {
                    self.at += c.len_utf8();
                    return Ok(Some((
                        from,
                        Piece::Other(rest.get(..c.len_utf8()).unwrap_or_default()),
                    )));
                }
            }
        }
    }
}

impl<'a> Iterator for Pieces<'a> {
    type Item = Result<(usize, Piece<'a>), FactQueryFault>;
    fn next(&mut self) -> Option<Self::Item> {
        let step = self.step().transpose();
        if matches!(step, Some(Err(_))) {
            self.at = self.text.len();
        }
        step
    }
}

fn is_word(c: char) -> bool {
    c.is_alphanumeric() || c == '_'
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_select_is_read_and_its_placeholders_are_counted() {
        for (text, expected) in [
            ("select tenant from invoice where id = $1", 1),
            ("SELECT 1", 0),
            ("  select 1 ; ", 0),
            (
                "-- who owns it?\nselect tenant from invoice where id = $1; -- done",
                1,
            ),
            ("/* ? :x $9 */ select 1", 0),
            ("with x as (select $2) select $1", 2),
            (
                "select '$3; ?' , \"a;b\", `c?`, 'it''s' from t where a = $1 and b = $1",
                1,
            ),
            ("select $q$ ; ? $7 $q$", 0),
            ("select $$;$$", 0),
            ("select id::text from t where n = $1::int", 1),
            (
                "select count(*) > 0 from member where tenant = $1 and subject = $2",
                2,
            ),
            ("select a->>'b' from t where c @> $1", 1),
            ("select x from t where größe = $1", 1),
            ("select a$2 from t where b=$1", 1),
        ] {
            assert_eq!(
                FactQuery::parse(text).map(|q| q.placeholders()),
                Ok(expected),
                "{text}"
            );
        }
    }

    #[test]
    fn what_is_not_one_select_says_where() {
        use FactQueryFault as F;
        let placeholder = |found: &str, at| F::Placeholder {
            found: found.into(),
            at,
        };
        let not_select = |found: &str| F::NotSelect { found: found.into() };
        for (text, expected) in [
            ("", F::Empty),
            (" -- select 1", F::Empty),
            (";", F::Empty),
            ("delete from t", not_select("delete")),
            ("selecting", not_select("selecting")),
            ("(select 1)", not_select("(")),
            ("$1", not_select("$")),
            ("pragma x", not_select("pragma")),
            ("select 1; drop table t", F::SecondStatement { at: 8 }),
            ("select 1;;", F::SecondStatement { at: 8 }),
            ("select ?", placeholder("?", 7)),
            ("select ?1", placeholder("?1", 7)),
            ("select :id", placeholder(":id", 7)),
            ("select @id", placeholder("@id", 7)),
            ("select $id", placeholder("$id", 7)),
            ("select $0", placeholder("$0", 7)),
            ("select $1x", placeholder("$1x", 7)),
            ("select $65", placeholder("$65", 7)),
            (
                "select $99999999999999999999",
                placeholder("$99999999999999999999", 7),
            ),
            ("select $2", F::Gap { used: 2, missing: 1 }),
            ("select $1, $3", F::Gap { used: 3, missing: 2 }),
            ("select 'x", F::Open { what: "text", at: 7 }),
            (
                "select \"x",
                F::Open {
                    what: "quoted name",
                    at: 7,
                },
            ),
            (
                "select /* x",
                F::Open {
                    what: "comment",
                    at: 7,
                },
            ),
            (
                "select /* /* x */ 1",
                F::Open {
                    what: "comment",
                    at: 7,
                },
            ),
            ("select $a$ x", F::Open { what: "text", at: 7 }),
            (r"select E'\'; drop table t --'", F::Backslash { at: 8 }),
            ("select \0", F::Nul { at: 7 }),
            ("select '\0'", F::Nul { at: 8 }),
        ] {
            assert_eq!(FactQuery::parse(text), Err(expected), "{text:?}");
        }
    }

    #[test]
    fn a_query_is_read_at_its_limits_and_refused_past_them() {
        let text = |length: usize| format!("select {}", "1".repeat(length - 7));
        assert!(FactQuery::parse(&text(FactQuery::BYTES_MAX)).is_ok());
        assert!(matches!(
            FactQuery::parse(&text(FactQuery::BYTES_MAX + 1)),
            Err(FactQueryFault::Long { .. })
        ));
        let many: Vec<String> = (1..=64).map(|n| format!("${n}")).collect();
        assert_eq!(
            FactQuery::parse(&format!("select {}", many.join(","))).map(|q| q.placeholders()),
            Ok(64)
        );
    }
}
