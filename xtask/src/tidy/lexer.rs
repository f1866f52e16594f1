//! Splits Rust source into code, comments and literals.
//!
//! Just enough of a lexer to look for words in code without being fooled by strings and comments,
//! and to match braces. It does not parse and accepts anything; `rustc` judges the rest.

/// A source file seen three ways, all with the same lines and columns.
pub struct Source {
    /// The text with comments and literals replaced by spaces.
    pub code: String,
    /// The text with everything but comments replaced by spaces.
    pub comments: String,
    /// For each line, whether it begins inside a literal (recorded text, say).
    pub in_literal: Vec<bool>,
}

/// What a character belongs to.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Kind {
    Code,
    Comment,
    Literal,
}

impl Source {
    /// Splits the text of a file.
    pub fn new(text: &str) -> Source {
        let chars: Vec<char> = text.chars().collect();
        let kinds = classify(&chars);
        let mut in_literal = vec![false];
        for (char, kind) in chars.iter().zip(&kinds) {
            if *char == '\n' {
                in_literal.push(*kind == Kind::Literal);
            }
        }
        Source {
            code: keep(&chars, &kinds, Kind::Code),
            comments: keep(&chars, &kinds, Kind::Comment),
            in_literal,
        }
    }
}

fn keep(chars: &[char], kinds: &[Kind], wanted: Kind) -> String {
    let blank = |(char, kind): (&char, &Kind)| match *char {
        '\n' => '\n',
        char if *kind == wanted => char,
        _ => ' ',
    };
    chars.iter().zip(kinds).map(blank).collect()
}

fn classify(chars: &[char]) -> Vec<Kind> {
    let mut kinds = Vec::with_capacity(chars.len());
    while kinds.len() < chars.len() {
        let (kind, length) = token(&chars[kinds.len()..]);
        assert!(length > 0, "every token has a character, or the loop would not end");
        // An unterminated literal may claim more than there is.
        let end = (kinds.len() + length).min(chars.len());
        kinds.resize(end, kind);
    }
    kinds
}

/// Kind and length of the token that `rest` begins with.
fn token(rest: &[char]) -> (Kind, usize) {
    match rest {
        ['/', '/', ..] => (Kind::Comment, line_comment_length(rest)),
        ['/', '*', ..] => (Kind::Comment, block_comment_length(rest)),
        ['"', ..] => (Kind::Literal, quoted_length(rest, '"')),
        ['\'', '\\', ..] | ['\'', _, '\'', ..] => (Kind::Literal, quoted_length(rest, '\'')),
        [first, ..] if is_word(*first) => word_or_literal(rest),
        _ => (Kind::Code, 1),
    }
}

/// A word, or the literal whose prefix it is (`b".."`, `r#".."#`, ..).
fn word_or_literal(rest: &[char]) -> (Kind, usize) {
    let length = rest.iter().take_while(|char| is_word(**char)).count();
    let after = &rest[length..];
    let literal = match (&rest[..length], after) {
        (['b' | 'c'], ['"', ..]) => Some(quoted_length(after, '"')),
        (['b'], ['\'', ..]) => Some(quoted_length(after, '\'')),
        (['r'] | ['b' | 'c', 'r'], ['"' | '#', ..]) => raw_length(after),
        _ => None,
    };
    literal.map_or((Kind::Code, length), |rest| (Kind::Literal, length + rest))
}

fn line_comment_length(rest: &[char]) -> usize {
    rest.iter().take_while(|char| **char != '\n').count()
}

fn block_comment_length(rest: &[char]) -> usize {
    let mut depth = 0;
    let mut at = 0;
    while at < rest.len() {
        match rest[at..] {
            ['/', '*', ..] => {
                depth += 1;
                at += 2;
            }
            ['*', '/', ..] => {
                depth -= 1;
                at += 2;
            }
            _ => at += 1,
        }
        if depth == 0 {
            break;
        }
    }
    at
}

/// Length of a literal with escapes, both quotes included.
fn quoted_length(rest: &[char], quote: char) -> usize {
    let mut at = 1;
    while at < rest.len() && rest[at] != quote {
        at += if rest[at] == '\\' { 2 } else { 1 };
    }
    at + 1
}

/// Length of a raw string from its first hash on; `None` for a raw identifier (`r#type`).
fn raw_length(rest: &[char]) -> Option<usize> {
    let hashes = rest.iter().take_while(|char| **char == '#').count();
    if rest.get(hashes) != Some(&'"') {
        return None;
    }
    let mut closing = vec!['"'];
    closing.resize(1 + hashes, '#');
    let body = &rest[hashes + 1..];
    let end = body.windows(closing.len()).position(|window| window == closing);
    Some(hashes + 1 + end.map_or(body.len(), |end| end + closing.len()))
}

/// Whether a character may be part of a name.
pub fn is_word(char: char) -> bool {
    char.is_alphanumeric() || char == '_'
}

/// Whether `text` has `wanted` at a place where no name runs into it from the left, nor, if it ends
/// like a name, from the right.
pub fn has_word(text: &str, wanted: &str) -> bool {
    text.match_indices(wanted).any(|(at, _)| {
        let before = text[..at].chars().next_back();
        let after = text[at + wanted.len()..].chars().next();
        let joins = |neighbour: Option<char>, edge: Option<char>| {
            edge.is_some_and(is_word) && neighbour.is_some_and(is_word)
        };
        !joins(before, wanted.chars().next()) && !joins(after, wanted.chars().next_back())
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The code of one line, blanks squeezed.
    fn code(text: &str) -> String {
        Source::new(text).code.split_whitespace().collect::<Vec<_>>().join(" ")
    }

    #[test]
    fn comments_are_not_code() {
        assert_eq!(code("a // b\nc"), "a c");
        assert_eq!(code("a /* b /* c */ d */ e"), "a e");
        assert_eq!(code("a /// b"), "a");
        assert_eq!(code("a / b * c"), "a / b * c");
        assert_eq!(code("a /* open"), "a");
    }

    #[test]
    fn strings_are_not_code() {
        assert_eq!(code(r#"a("b{") + c"#), "a( ) + c");
        assert_eq!(code(r#"a("\"{") + c"#), "a( ) + c");
        assert_eq!(code(r#"a("\\") + c"#), "a( ) + c");
        assert_eq!(code(r#"a(b"{", c"}") + c"#), "a( , ) + c");
        assert_eq!(code("a(\"// no comment\") // comment"), "a( )");
        assert_eq!(code("a \"open"), "a");
    }

    #[test]
    fn raw_strings_end_at_their_own_hashes() {
        assert_eq!(code(r####"a(r#"b"{"#) + c"####), "a( ) + c");
        assert_eq!(code(r####"a(br##"b"#{"##) + c"####), "a( ) + c");
        assert_eq!(code(r####"a(r"\") + c"####), "a( ) + c");
        assert_eq!(code("r#type + r#\"b\"#"), "r#type +");
        assert_eq!(code("for\"b\""), "for");
    }

    #[test]
    fn a_quote_opens_a_character_or_a_lifetime() {
        assert_eq!(code("a('{', '\"', b'}')"), "a( , , )");
        assert_eq!(code(r"a('\'', '\\', '\u{7b}')"), "a( , , )");
        assert_eq!(code("fn a<'b>(c: &'b str) { 'd: loop {} }"), {
            "fn a<'b>(c: &'b str) { 'd: loop {} }"
        });
        assert_eq!(code("View<'_>"), "View<'_>");
    }

    #[test]
    fn lines_that_begin_inside_a_literal_are_marked() {
        let source = Source::new("a(\"\n  b\n\");\n\"c\"\nd");
        assert_eq!(source.in_literal, [false, true, true, false, false]);
    }

    #[test]
    fn comments_keep_their_place() {
        assert_eq!(Source::new("a // b\n\"// c\"").comments, "  // b\n      ");
    }

    #[test]
    fn a_word_stands_alone() {
        assert!(has_word("a print!(b)", "print!"));
        assert!(!has_word("a eprint!(b)", "print!"));
        assert!(!has_word("HashMapLike", "HashMap"));
        assert!(has_word("x.exp()", ".exp()"));
    }
}
