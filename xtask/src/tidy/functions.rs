//! Finds functions in blanked code and measures them.
//!
//! Works by words and brackets, so that it also sees functions that macros are given. Lines that
//! begin inside a literal do not count: recorded text is not logic.

use super::lexer::{Source, is_word};

/// A function with a body.
#[derive(Debug, PartialEq, Eq)]
pub struct Function {
    /// Its name.
    pub name: String,
    /// Line of the `fn` keyword, from 1.
    pub line: usize,
    /// Lines from the keyword to the closing brace, both included.
    pub lines: usize,
}

/// All functions with a body, nested ones too, in order of their first line.
pub fn functions(source: &Source) -> Vec<Function> {
    let code: Vec<char> = source.code.chars().collect();
    let mut line = 1;
    let mut found = Vec::new();
    for at in 0..code.len() {
        if let Some((name, length)) = function_at(&code, at) {
            let newlines = code[at..at + length].iter().filter(|char| **char == '\n').count();
            let span = line - 1..line + newlines;
            let lines = source.in_literal[span].iter().filter(|inside| !**inside).count();
            found.push(Function { name, line, lines });
        }
        if code[at] == '\n' {
            line += 1;
        }
    }
    found
}

/// Name of the function whose `fn` stands at `at`, and the number of characters to its last brace.
fn function_at(code: &[char], at: usize) -> Option<(String, usize)> {
    let alone = at == 0 || !is_word(code[at - 1]);
    let ['f', 'n', space, rest @ ..] = &code[at..] else {
        return None;
    };
    if !alone || !space.is_whitespace() {
        return None;
    }
    let name: String = rest
        .iter()
        .skip_while(|char| char.is_whitespace())
        .take_while(|char| is_word(**char) || **char == '$' || **char == '#')
        .collect();
    let length = body_end(&code[at..])?;
    (!name.is_empty()).then_some((name, length))
}

/// Characters up to and with the brace that closes the body; `None` for a mere signature.
fn body_end(code: &[char]) -> Option<usize> {
    let mut brackets = 0_usize;
    let mut braces = 0_usize;
    for (at, char) in code.iter().enumerate() {
        match char {
            '(' | '[' => brackets += 1,
            ')' | ']' => brackets = brackets.saturating_sub(1),
            ';' if brackets == 0 && braces == 0 => return None,
            // Braces inside the brackets of a signature are constants, as in `[u8; { N }]`.
            '{' if braces > 0 || brackets == 0 => braces += 1,
            '}' if braces == 1 => return Some(at + 1),
            '}' if braces > 1 => braces -= 1,
            _ => {}
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    /// `name line lines` of every function.
    fn measured(text: &str) -> Vec<String> {
        let show = |found: Function| format!("{} {} {}", found.name, found.line, found.lines);
        functions(&Source::new(text)).into_iter().map(show).collect()
    }

    #[test]
    fn a_function_spans_from_keyword_to_closing_brace() {
        assert_eq!(measured("//! a\n\npub fn one() {\n    two();\n}\n"), ["one 3 3"]);
        assert_eq!(measured("fn one() {}"), ["one 1 1"]);
    }

    #[test]
    fn nested_functions_are_measured_too() {
        assert_eq!(
            measured("fn a() {\n    fn b() {\n    }\n}\nfn c() {}"),
            ["a 1 4", "b 2 2", "c 5 1"]
        );
    }

    #[test]
    fn braces_in_literals_and_comments_do_not_count() {
        assert_eq!(measured("fn a() {\n    b(\"}\", '}'); // }\n    /* } */\n}"), ["a 1 4"]);
        assert_eq!(measured("fn a<'b>(c: &'b str) {\n    r#\"}\"}\"#;\n}"), ["a 1 3"]);
    }

    #[test]
    fn signatures_and_pointers_are_no_functions() {
        assert_eq!(measured("trait A {\n    fn b(&self);\n    fn c(&self) {}\n}"), ["c 3 1"]);
        assert_eq!(measured("struct A { call: fn(u8) -> u8, define: u8 }"), [""; 0]);
        assert_eq!(measured("fn a(b: [u8; { 1 + 1 }]) -> [u8; 2] {\n}"), ["a 1 2"]);
    }

    #[test]
    fn recorded_text_does_not_count() {
        assert_eq!(measured("fn a() {\n    check(\"\n b\n c\n \");\n}"), ["a 1 3"]);
    }
}
