//! A line of options as a shell would split it: blanks, quotes and backslashes, a comment behind
//! `#`. Nothing is expanded.

/// The words of a line; none where a quote is not closed.
pub fn split(line: &str) -> Option<Vec<String>> {
    let mut words = Vec::new();
    let mut word: Option<String> = None;
    let mut chars = line.chars();
    while let Some(char) = chars.next() {
        match char {
            '\'' => {
                let word = word.get_or_insert_default();
                loop {
                    match chars.next()? {
                        '\'' => break,
                        char => word.push(char),
                    }
                }
            }
            '"' => {
                let word = word.get_or_insert_default();
                loop {
                    match chars.next()? {
                        '"' => break,
                        '\\' => word.push(chars.next()?),
                        char => word.push(char),
                    }
                }
            }
            '\\' => word.get_or_insert_default().push(chars.next()?),
            '#' if word.is_none() => break,
            char if char.is_whitespace() => words.extend(word.take()),
            char => word.get_or_insert_default().push(char),
        }
    }
    words.extend(word);
    Some(words)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quotes_keep_blanks_and_comments_end_the_line() {
        let words = |line| split(line).unwrap();
        assert_eq!(words("  --gpus 2\t--name='a b' # why"), ["--gpus", "2", "--name=a b"]);
        assert_eq!(words(r#""a \" b"c d\ e f#g '' "#), ["a \" bc", "d e", "f#g", ""]);
        assert_eq!((split("'open"), split("\"open"), split("end\\")), (None, None, None));
        assert!(words("").is_empty());
    }
}
