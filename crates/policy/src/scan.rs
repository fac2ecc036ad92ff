//! Cuts a policy file into its rules and bounds how deep each may nest, before the parser sees them.
//!
//! Cedar's parser and the tree it builds are recursive, so a text of brackets or of operators without end could
//! exhaust the stack, which no `catch_unwind` survives. This file reads words and signs, nothing more: whether a
//! rule is a rule is for Cedar to say. It keeps no state between rules and works without recursion.

use std::iter::Peekable;
use std::str::CharIndices;

/// How deep the tree of a rule may be: operators, brackets and `if` on top of each other. `a || b || c` is two deep.
///
/// Set by what a decision needs. On a stack of 2 MiB, which is what a thread of the runtime has, a release build of
/// Cedar's evaluator reaches a depth of about 450 before it gives up with an error, which denies; a debug build, 35.
/// People write rules of five to ten. A list has no depth and may be long.
pub(crate) const DEPTH_MAX: usize = 100;

/// One rule of a file, as text, with what was measured on it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Statement<'a> {
    /// From the first word or sign to the semicolon, which is included.
    pub(crate) text: &'a str,
    /// Where it starts in the file, in bytes.
    pub(crate) start: usize,
    /// How deep its tree can be, and the parser's recursion: at least as deep as both.
    pub(crate) depth: usize,
}

/// A word, sign, number or quoted text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Token<'a> {
    /// The token as written, with quotes where it has them.
    pub(crate) text: &'a str,
    /// Where it starts, in bytes.
    pub(crate) start: usize,
}

/// Cuts `text` at its semicolons. A rest without a semicolon is a statement too, for the parser to complain about.
pub(crate) fn statements(text: &str) -> Statements<'_> {
    Statements {
        text,
        tokens: tokens(text),
    }
}

/// The words and signs of `text`, without white space and comments.
pub(crate) fn tokens(text: &str) -> Tokens<'_> {
    Tokens {
        text,
        chars: text.char_indices().peekable(),
    }
}

/// Iterates over the rules of a file.
pub(crate) struct Statements<'a> {
    text: &'a str,
    tokens: Tokens<'a>,
}

impl<'a> Iterator for Statements<'a> {
    type Item = Statement<'a>;

    fn next(&mut self) -> Option<Statement<'a>> {
        let first = self.tokens.next()?;
        let mut measure = Measure::default();
        let mut last = first;
        loop {
            measure.take(last.text);
            if last.text == ";" {
                break;
            }
            match self.tokens.next() {
                Some(token) => last = token,
                None => break,
            }
        }
        let depth = measure.finish();
        let end = last.start + last.text.len();
        Some(Statement {
            text: self.text.get(first.start..end).unwrap_or_default(),
            start: first.start,
            depth,
        })
    }
}

/// Iterates over words and signs.
pub(crate) struct Tokens<'a> {
    text: &'a str,
    chars: Peekable<CharIndices<'a>>,
}

impl<'a> Iterator for Tokens<'a> {
    type Item = Token<'a>;

    fn next(&mut self) -> Option<Token<'a>> {
        loop {
            let (start, first) = self.chars.next()?;
            match first {
                c if c.is_whitespace() => {}
                '/' if self.follows('/') => self.skip(|c| c != '\n' && c != '\r'),
                '"' => {
                    self.quoted();
                    return Some(self.token(start));
                }
                c if word(c) => {
                    self.skip(word);
                    return Some(self.token(start));
                }
                c => {
                    if let Some(&(_, second)) = self.chars.peek()
                        && matches!(
                            (c, second),
                            ('&', '&') | ('|', '|') | ('=', '=') | ('!' | '<' | '>', '=') | (':', ':')
                        )
                    {
                        self.chars.next();
                    }
                    return Some(self.token(start));
                }
            }
        }
    }
}

impl<'a> Tokens<'a> {
    fn follows(&mut self, wanted: char) -> bool {
        self.chars.peek().is_some_and(|&(_, c)| c == wanted)
    }

    fn skip(&mut self, wanted: fn(char) -> bool) {
        while self.chars.next_if(|&(_, c)| wanted(c)).is_some() {}
    }

    /// Reads to the closing quote. A backslash takes the next character with it, as in Cedar's own lexer.
    fn quoted(&mut self) {
        while let Some((_, c)) = self.chars.next() {
            match c {
                '"' => return,
                '\\' => {
                    self.chars.next();
                }
                _ => {}
            }
        }
    }

    fn token(&mut self, start: usize) -> Token<'a> {
        let end = self.chars.peek().map_or(self.text.len(), |&(at, _)| at);
        Token {
            text: self.text.get(start..end).unwrap_or_default(),
            start,
        }
    }
}

fn word(c: char) -> bool {
    c.is_ascii_alphanumeric() || c == '_'
}

/// Bounds the depth of the tree that a text becomes, from its brackets and operators alone.
///
/// A chain of operators of one rank is as deep as it is long, and stands above the deepest of its parts; operators
/// that bind tighter belong to the parts. Commas separate: a list of a thousand is flat.
#[derive(Default)]
struct Measure {
    open: Vec<Frame>,
    here: Frame,
}

/// What was seen inside one bracket, or behind one `if`.
#[derive(Default, Clone, Copy)]
struct Frame {
    /// Opened by `if`: closed by whatever closes the bracket around it.
    conditional: bool,
    /// The part since the last comma, `then` or `else`.
    part: Part,
    /// The depth of the deepest part so far.
    deepest: usize,
}

/// One expression, measured from left to right.
#[derive(Default, Clone, Copy)]
struct Part {
    /// For each rank, loosest first: operators in the chain that is open, and its deepest finished operand.
    chains: [Chain; Rank::ALL.len()],
    /// Dots, calls, indexes and `!` around the current operand.
    steps: usize,
    /// The deepest bracket of the current operand.
    child: usize,
}

#[derive(Default, Clone, Copy)]
struct Chain {
    operators: usize,
    operand: usize,
}

/// How tightly an operator binds.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Rank {
    Or,
    And,
    Relation,
    Sum,
    Product,
}

impl Rank {
    const ALL: [Self; 5] = [Self::Or, Self::And, Self::Relation, Self::Sum, Self::Product];
}

impl Measure {
    fn take(&mut self, token: &str) {
        match token {
            "(" | "[" | "{" => self.open(false),
            ")" | "]" | "}" => {
                self.end_conditionals();
                self.close();
            }
            "," => {
                self.end_conditionals();
                self.here.end_part();
            }
            "if" => self.open(true),
            "then" | "else" => self.here.end_part(),
            "." | "!" => self.here.part.steps += 1,
            "||" => self.here.part.operator(Rank::Or),
            // Clauses are joined with `&&`.
            "&&" | "when" | "unless" => self.here.part.operator(Rank::And),
            "==" | "!=" | "<" | "<=" | ">" | ">=" | "in" | "has" | "like" | "is" => {
                self.here.part.operator(Rank::Relation)
            }
            "+" | "-" => self.here.part.operator(Rank::Sum),
            "*" | "/" | "%" => self.here.part.operator(Rank::Product),
            _ => {}
        }
    }

    fn open(&mut self, conditional: bool) {
        let inner = Frame {
            conditional,
            ..Frame::default()
        };
        self.open.push(std::mem::replace(&mut self.here, inner));
    }

    /// Closes a frame. A bracket that was never opened is the parser's to report.
    fn close(&mut self) {
        if let Some(outer) = self.open.pop() {
            let mut inner = std::mem::replace(&mut self.here, outer);
            inner.end_part();
            let part = &mut self.here.part;
            part.child = part.child.max(inner.deepest + 1);
            // A bracket behind an operand is a call or an index, and may be one of many: `a[0][1]`.
            part.steps += usize::from(!inner.conditional);
        }
    }

    /// Ends the `if`s whose last branch ends here.
    fn end_conditionals(&mut self) {
        while self.here.conditional {
            self.close();
        }
    }

    /// The depth; brackets that are still open count as if closed here.
    fn finish(mut self) -> usize {
        while !self.open.is_empty() {
            self.close();
        }
        self.here.end_part();
        self.here.deepest
    }
}

impl Frame {
    fn end_part(&mut self) {
        self.deepest = self.deepest.max(self.part.depth());
        self.part = Part::default();
    }
}

impl Part {
    /// Ends every chain that binds tighter than `rank`, and lengthens the one of this rank.
    fn operator(&mut self, rank: Rank) {
        let mut depth = self.operand();
        for (tighter, chain) in Rank::ALL.into_iter().zip(&mut self.chains).rev() {
            if tighter == rank {
                chain.operand = chain.operand.max(depth);
                chain.operators += 1;
                return;
            }
            depth = chain.end(depth);
        }
    }

    fn depth(mut self) -> usize {
        let operand = self.operand();
        self.chains
            .iter_mut()
            .rev()
            .fold(operand, |depth, chain| chain.end(depth))
    }

    fn operand(&mut self) -> usize {
        std::mem::take(&mut self.steps) + std::mem::take(&mut self.child)
    }
}

impl Chain {
    /// The depth of the chain with this last operand; the chain is empty afterwards.
    fn end(&mut self, operand: usize) -> usize {
        let chain = std::mem::take(self);
        chain.operators + chain.operand.max(operand)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn words(text: &str) -> Vec<&str> {
        tokens(text).map(|token| token.text).collect()
    }

    fn cut(text: &str) -> Vec<&str> {
        statements(text).map(|statement| statement.text).collect()
    }

    fn depth(text: &str) -> usize {
        statements(text).next().unwrap().depth
    }

    #[test]
    fn words_signs_and_quoted_texts_are_told_apart() {
        assert_eq!(
            words(r#"a&&b==c::"d\"; e" != 12 // no; ")" here"#),
            ["a", "&&", "b", "==", "c", "::", r#""d\"; e""#, "!=", "12"]
        );
        assert_eq!(words("a//x\rb//y\nc/d"), ["a", "b", "c", "/", "d"]);
        assert_eq!(words("\"never closed ; ("), ["\"never closed ; ("]);
        assert_eq!(words("é\u{3000}ü"), ["é", "ü"]);
    }

    #[test]
    fn a_file_is_cut_at_semicolons_and_nowhere_else() {
        assert_eq!(cut(""), [""; 0]);
        assert_eq!(cut(" // only; a comment\n"), [""; 0]);
        assert_eq!(
            cut("a(\";\"); // c;\n b // ;\n ;c"),
            ["a(\";\");", "b // ;\n ;", "c"]
        );
        assert_eq!(cut(";;"), [";", ";"]);
        let starts: Vec<_> = statements(" a;\n// x\n b;").map(|s| s.start).collect();
        assert_eq!(starts, [1, 10]);
    }

    #[test]
    fn a_chain_is_as_deep_as_it_is_long_and_its_parts_add_only_their_deepest() {
        for (text, expected) in [
            ("a;", 0),
            ("a || b || c;", 2),
            ("a || b && c || d && e;", 3),
            ("a.b == c && d.e == f && g.h == i;", 4),
            ("a || b && c + d * e == f;", 5),
            ("a * b + c == d && e || f;", 5),
            ("a.b.c;", 2),
            ("!!a;", 2),
            // A bracket is one level and one step, since it may be a call.
            ("(a);", 2),
            ("((a));", 4),
            ("f(a)(b)(c);", 4),
            ("[a || b, c || d, e];", 3),
            ("(a && b) && c && d;", 5),
            ("a && (b || (c && d));", 7),
            ("if a then b || c || d else e;", 3),
            ("if a then b else if c then d else e || f;", 3),
            ("(if a then b else c) || d;", 4),
            ("x () when {a || b} unless {c || d};", 5),
            ("(((;", 6),
            (")));", 0),
            ("\"(((\";", 0),
        ] {
            assert_eq!(depth(text), expected, "{text}");
        }
        let list = format!("[{}];", vec!["1"; 10_000].join(","));
        assert_eq!(depth(&list), 2);
    }

    proptest! {
        #[test]
        fn nothing_but_space_and_comments_is_lost(text in "[a-z\"\\\\;(){}/\n ,.é]{0,80}") {
            let kept: String = tokens(&text).map(|t| t.text).collect();
            let again: String = statements(&text).flat_map(|s| tokens(s.text).map(|t| t.text).collect::<Vec<_>>()).collect();
            prop_assert_eq!(&kept, &again);
            for token in tokens(&text) {
                prop_assert_eq!(text.get(token.start..token.start + token.text.len()), Some(token.text));
                prop_assert!(!token.text.is_empty());
            }
        }
    }
}
