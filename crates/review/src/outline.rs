//! The keys of a JSON or YAML text as an outline: which keys stand in which, a few levels deep, with the scalars behind
//! them. No parser: it follows indentation, braces and quotes, and passes over what it does not need.

use std::collections::{BTreeMap, HashMap};

/// Levels of keys that are kept; operations stand on the fourth.
const DEPTH_MAX: usize = 8;

/// One key and what stands in it.
#[derive(Debug, Default)]
struct Node {
    /// By their first appearance does not matter here: they are counted.
    children: BTreeMap<String, usize>,
    value: Option<String>,
    /// Names of anchors whose keys stand here, too.
    merged: Vec<String>,
}

/// The keys of a text.
#[derive(Debug)]
pub(crate) struct Outline {
    nodes: Vec<Node>,
    anchors: HashMap<String, usize>,
}

impl Outline {
    /// Reads a text; whatever it is, something comes out.
    pub(crate) fn read(text: &str) -> Self {
        let mut outline = Self {
            nodes: vec![Node::default()],
            anchors: HashMap::new(),
        };
        let text = text.strip_prefix('\u{feff}').unwrap_or(text);
        if text.trim_start().starts_with('{') {
            let mut flow = Flow::new(text);
            flow.value(&mut outline, Some(0), 0);
        } else {
            Block::new(text).read(&mut outline);
        }
        outline
    }

    /// The keys at a place.
    pub(crate) fn keys(&self, place: &[&str]) -> Vec<String> {
        let Some(node) = self.find(place) else {
            return Vec::new();
        };
        let mut keys: Vec<String> = Vec::new();
        self.keys_of(node, 0, &mut keys);
        keys
    }

    fn keys_of(&self, node: usize, depth: usize, keys: &mut Vec<String>) {
        let Some(node) = self.nodes.get(node).filter(|_| depth < 16) else {
            return;
        };
        keys.extend(node.children.keys().cloned());
        for target in node.merged.iter().filter_map(|name| self.anchors.get(name)) {
            self.keys_of(*target, depth + 1, keys);
        }
    }

    /// The scalar at a place.
    pub(crate) fn value(&self, place: &[&str]) -> Option<&str> {
        self.nodes.get(self.find(place)?)?.value.as_deref()
    }

    fn find(&self, place: &[&str]) -> Option<usize> {
        place.iter().try_fold(0, |node, key| self.child_of(node, key, 0))
    }

    fn child_of(&self, node: usize, key: &str, depth: usize) -> Option<usize> {
        let node = self.nodes.get(node).filter(|_| depth < 16)?;
        node.children.get(key).copied().or_else(|| {
            let targets = node.merged.iter().filter_map(|name| self.anchors.get(name));
            targets
                .filter_map(|target| self.child_of(*target, key, depth + 1))
                .next()
        })
    }

    /// Adds a key; `None` where it lies too deep to be kept.
    fn add(&mut self, parent: Option<usize>, key: &str, depth: usize) -> Option<usize> {
        let parent = parent.filter(|_| depth < DEPTH_MAX)?;
        let next = self.nodes.len();
        let known = *self
            .nodes
            .get_mut(parent)?
            .children
            .entry(key.to_owned())
            .or_insert(next);
        if known == next {
            self.nodes.push(Node::default());
        }
        Some(known)
    }

    fn merge(&mut self, node: Option<usize>, anchor: &str) {
        if let Some(node) = node.and_then(|node| self.nodes.get_mut(node)) {
            node.merged.push(anchor.to_owned());
        }
    }

    fn anchor(&mut self, node: Option<usize>, name: &str) {
        if let Some(node) = node {
            self.anchors.insert(name.to_owned(), node);
        }
    }

    fn set(&mut self, node: Option<usize>, value: &str) {
        if let Some(node) = node.and_then(|node| self.nodes.get_mut(node)) {
            node.value = Some(value.to_owned());
        }
    }
}

// === braces and brackets: JSON, and the flow style of YAML ===

struct Flow<'t> {
    text: &'t str,
    at: usize,
}

/// Braces inside each other that are followed; deeper ones are passed over.
const FLOW_DEPTH_MAX: usize = 128;

impl<'t> Flow<'t> {
    const fn new(text: &'t str) -> Self {
        Self { text, at: 0 }
    }

    fn rest(&self) -> &'t str {
        self.text.get(self.at..).unwrap_or_default()
    }

    fn skip_blanks(&mut self) {
        loop {
            let rest = self.rest();
            let trimmed = rest.trim_start();
            self.at += rest.len() - trimmed.len();
            if !trimmed.starts_with('#') {
                return;
            }
            self.at += trimmed.find('\n').unwrap_or(trimmed.len());
        }
    }

    /// Reads one value into a node.
    fn value(&mut self, outline: &mut Outline, node: Option<usize>, depth: usize) {
        self.skip_blanks();
        // An object has keys, a list only items; both end with their bracket.
        match self.rest().chars().next() {
            Some('{') if depth < FLOW_DEPTH_MAX => {
                self.at += 1;
                self.entries(outline, node, depth);
            }
            Some('[') if depth < FLOW_DEPTH_MAX => {
                self.at += 1;
                self.items(outline, depth);
            }
            Some('{' | '[') => self.pass_over(),
            Some('*') => {
                let name = self.token();
                outline.merge(node, name.trim_start_matches('*'));
            }
            Some('&') => {
                let name = self.token();
                outline.anchor(node, name.trim_start_matches('&'));
                self.value(outline, node, depth + 1);
            }
            Some(_) => {
                let text = self.scalar(false);
                outline.set(node, &text);
            }
            None => {}
        }
    }

    fn entries(&mut self, outline: &mut Outline, node: Option<usize>, depth: usize) {
        loop {
            self.skip_blanks();
            match self.rest().chars().next() {
                None => return,
                Some('}') => {
                    self.at += 1;
                    return;
                }
                Some(',' | ']') => {
                    self.at += 1;
                    continue;
                }
                Some(_) => {}
            }
            let before = self.at;
            let key = self.scalar(true);
            self.skip_blanks();
            if self.rest().starts_with(':') {
                self.at += 1;
                if key == "<<" {
                    self.value(outline, node, depth + 1);
                } else {
                    let child = outline.add(node, &key, depth);
                    self.value(outline, child, depth + 1);
                }
            } else if self.at == before {
                // Whatever stands there is no key; the text goes on behind it.
                self.at += self.rest().chars().next().map_or(1, char::len_utf8);
            }
        }
    }

    fn items(&mut self, outline: &mut Outline, depth: usize) {
        loop {
            self.skip_blanks();
            match self.rest().chars().next() {
                None => return,
                Some(']') => {
                    self.at += 1;
                    return;
                }
                Some(',' | '}' | ':') => self.at += 1,
                Some(_) => {
                    let before = self.at;
                    self.value(outline, None, depth + 1);
                    if self.at == before {
                        self.at += self.rest().chars().next().map_or(1, char::len_utf8);
                    }
                }
            }
        }
    }

    /// Passes over what is nested too deep: only brackets and quotes count.
    fn pass_over(&mut self) {
        let mut open = 0_usize;
        while let Some(character) = self.rest().chars().next() {
            match character {
                '{' | '[' => open += 1,
                '}' | ']' => open = open.saturating_sub(1),
                '"' => {
                    self.scalar(false);
                    continue;
                }
                _ => {}
            }
            self.at += character.len_utf8();
            if open == 0 {
                return;
            }
        }
    }

    fn token(&mut self) -> &'t str {
        let rest = self.rest();
        let end = rest
            .find(|c: char| c.is_whitespace() || matches!(c, ',' | '}' | ']'))
            .unwrap_or(rest.len());
        self.at += end;
        rest.get(..end).unwrap_or_default()
    }

    /// A text, quoted or plain. A plain key ends with its colon.
    fn scalar(&mut self, is_key: bool) -> String {
        let rest = self.rest();
        if let Some((text, length)) = quoted(rest) {
            self.at += length;
            return text;
        }
        let end = rest
            .char_indices()
            .find(|(at, character)| match character {
                ',' | '}' | ']' | '{' | '[' | '\n' => true,
                ':' => {
                    let next = rest.get(at + 1..).and_then(|rest| rest.chars().next());
                    (is_key || next.is_none_or(char::is_whitespace))
                        && next.is_none_or(|next| {
                            next.is_whitespace() || matches!(next, '{' | '[' | '"' | '\'' | ',' | '}')
                        })
                }
                _ => false,
            })
            .map_or(rest.len(), |(at, _)| at);
        self.at += end;
        rest.get(..end).unwrap_or_default().trim().to_owned()
    }
}

/// A quoted text at the start of another, and the length of it with its quotes. One that does not end goes to the end.
fn quoted(text: &str) -> Option<(String, usize)> {
    let quote = text.chars().next().filter(|first| matches!(first, '"' | '\''))?;
    let mut out = String::new();
    let mut characters = text.char_indices().skip(1).peekable();
    while let Some((at, character)) = characters.next() {
        if character == quote {
            if quote == '\'' && characters.peek().is_some_and(|(_, next)| *next == '\'') {
                characters.next();
                out.push('\'');
                continue;
            }
            return Some((out, at + 1));
        }
        if character == '\\' && quote == '"' {
            match characters.next() {
                Some((_, 'u')) => {
                    let digits: String = (0..4).filter_map(|_| characters.next().map(|(_, c)| c)).collect();
                    let code = u32::from_str_radix(&digits, 16).ok();
                    out.push(code.and_then(char::from_u32).unwrap_or('\u{fffd}'));
                }
                Some((_, 'n')) => out.push('\n'),
                Some((_, 't')) => out.push('\t'),
                Some((_, other)) => out.push(other),
                None => {}
            }
            continue;
        }
        out.push(character);
    }
    Some((out, text.len()))
}

// === indentation: the block style of YAML ===

struct Block<'t> {
    text: &'t str,
    at: usize,
}

/// A key that is open: its column, and the node where it is kept.
struct Open {
    column: usize,
    node: Option<usize>,
}

impl<'t> Block<'t> {
    const fn new(text: &'t str) -> Self {
        Self { text, at: 0 }
    }

    fn line(&self) -> Option<&'t str> {
        let rest = self.text.get(self.at..).filter(|rest| !rest.is_empty())?;
        Some(rest.split_inclusive('\n').next().unwrap_or(rest))
    }

    fn read(mut self, outline: &mut Outline) {
        let mut open: Vec<Open> = Vec::new();
        // The anchor of a key whose value is a block below it is known before its keys are.
        while let Some(line) = self.line() {
            let start = self.at;
            self.at += line.len();
            let content = line.trim_start_matches(' ');
            let column = line.len() - content.len();
            let content = content.trim_end();
            if content.is_empty()
                || content.starts_with('#')
                || content.starts_with('%')
                || content.starts_with("---")
            {
                continue;
            }
            if content == "-" || content.starts_with("- ") {
                // An item of a list is deeper than any operation; only its end is looked for.
                open.retain(|open| open.column <= column);
                self.pass_item(content, column, start + column);
                continue;
            }
            open.retain(|open| open.column < column);
            let depth = open.len();
            let parent = open.last().map_or(Some(0), |open| open.node);
            if matches!(content.chars().next(), Some('{' | '[')) {
                self.flow(outline, parent, depth, start + column);
                continue;
            }
            let Some((key, value)) = key_of(content) else {
                continue;
            };
            let value_at = start + column + (content.len() - value.len());
            if key == "<<" {
                for name in value.split(|c: char| c.is_whitespace() || matches!(c, '[' | ']' | ',')) {
                    if let Some(name) = name.strip_prefix('*') {
                        outline.merge(parent, name);
                    }
                }
                continue;
            }
            let node = outline.add(parent, &key, depth);
            open.push(Open { column, node });
            self.value(outline, node, depth + 1, value, (column, value_at));
        }
    }

    /// What stands behind a key on its line.
    fn value(
        &mut self,
        outline: &mut Outline,
        node: Option<usize>,
        depth: usize,
        value: &'t str,
        (column, at): (usize, usize),
    ) {
        let mut value = value;
        let mut at = at;
        // Anchors and tags stand before what they speak of.
        while let Some(mark) = value.chars().next().filter(|mark| matches!(mark, '&' | '!')) {
            let end = value.find(char::is_whitespace).unwrap_or(value.len());
            let (token, rest) = value.split_at(end);
            if mark == '&' {
                outline.anchor(node, token.trim_start_matches('&'));
            }
            let trimmed = rest.trim_start();
            at += end + (rest.len() - trimmed.len());
            value = trimmed;
        }
        match value.chars().next() {
            None | Some('#') => {}
            Some('{' | '[') => self.flow(outline, node, depth, at),
            Some('*') => outline.merge(
                node,
                value
                    .trim_start_matches('*')
                    .split_whitespace()
                    .next()
                    .unwrap_or_default(),
            ),
            Some('|' | '>') => self.pass_block(column),
            Some('"' | '\'') => {
                let rest = self.text.get(at..).unwrap_or_default();
                if let Some((text, length)) = quoted(rest) {
                    outline.set(node, &text);
                    self.go_past(at + length);
                }
            }
            Some(_) => {
                let text = value.split(" #").next().unwrap_or(value);
                outline.set(node, text.trim_end());
            }
        }
    }

    fn flow(&mut self, outline: &mut Outline, node: Option<usize>, depth: usize, at: usize) {
        let mut flow = Flow { text: self.text, at };
        flow.value(outline, node, depth);
        self.go_past(flow.at);
    }

    /// Goes on with the line behind a place.
    fn go_past(&mut self, at: usize) {
        let rest = self.text.get(at..).unwrap_or_default();
        let end = at + rest.find('\n').map_or(rest.len(), |end| end + 1);
        self.at = self.at.max(end);
    }

    /// Passes over the lines of a literal or folded text: all that are indented more than its key.
    fn pass_block(&mut self, column: usize) {
        while let Some(line) = self.line() {
            let content = line.trim_start_matches(' ');
            if !content.trim().is_empty() && line.len() - content.len() <= column {
                return;
            }
            self.at += line.len();
        }
    }

    /// Passes over an item of a list that begins on this line, as far as quotes, braces and literals go on.
    fn pass_item(&mut self, content: &'t str, column: usize, at: usize) {
        let inner = content.trim_start_matches('-').trim_start();
        let inner_at = at + (content.len() - inner.len());
        let inner_column = column + (content.len() - inner.len());
        let mut nothing = Outline {
            nodes: Vec::new(),
            anchors: HashMap::new(),
        };
        if inner.starts_with("- ") {
            self.pass_item(inner, inner_column, inner_at);
        } else if matches!(inner.chars().next(), Some('{' | '[' | '"' | '\'' | '|' | '>'))
            && key_of(inner).is_none()
        {
            self.value(&mut nothing, None, 0, inner, (column, inner_at));
        } else if let Some((_, value)) = key_of(inner) {
            let value_at = inner_at + (inner.len() - value.len());
            self.value(&mut nothing, None, 0, value, (inner_column, value_at));
        }
    }
}

/// A key at the start of a line and what stands behind its colon.
fn key_of(content: &str) -> Option<(String, &str)> {
    if let Some((key, length)) = quoted(content) {
        let behind = content.get(length..)?.trim_start().strip_prefix(':')?;
        return Some((key, behind.trim_start()));
    }
    let content_of_explicit = content.strip_prefix("? ").unwrap_or(content);
    let end = content_of_explicit
        .char_indices()
        .find(|(at, character)| {
            *character == ':'
                && content_of_explicit
                    .get(at + 1..)
                    .is_none_or(|rest| rest.is_empty() || rest.starts_with([' ', '\t']))
        })
        .map(|(at, _)| at)?;
    let key = content_of_explicit.get(..end)?.trim();
    let value = content_of_explicit.get(end + 1..)?.trim_start();
    if key.contains(" #") || matches!(key.chars().next(), Some('{' | '[')) {
        return None;
    }
    Some((key.to_owned(), value))
}
