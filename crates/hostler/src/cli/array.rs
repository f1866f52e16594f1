//! Arrays as they are written on the command line.

use std::str::FromStr;

/// How many copies, with which indices, and how many of them at once.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Array {
    /// How many.
    pub count: u32,
    /// The first index.
    pub first: u32,
    /// Distance between two, where it is written.
    pub step: Option<u32>,
    /// How many run at once at most.
    pub limit: Option<u32>,
}

impl FromStr for Array {
    type Err = String;

    fn from_str(text: &str) -> Result<Array, String> {
        read(text).ok_or_else(|| {
            format!("`{text}` is no array; write 10, 1-10, 1-10:2 or 1-10%4, with 1 job at least")
        })
    }
}

fn read(text: &str) -> Option<Array> {
    let (indices, limit) = match text.split_once('%') {
        Some((indices, limit)) => (indices, Some(number(limit)?)),
        None => (text, None),
    };
    let (indices, step) = match indices.split_once(':') {
        Some((indices, step)) => (indices, Some(number(step)?)),
        None => (indices, None),
    };
    if limit == Some(0) || step == Some(0) {
        return None;
    }
    let Some((first, last)) = indices.split_once('-') else {
        let count = number(indices).filter(|count| *count > 0 && step.is_none())?;
        return Some(Array { count, first: 0, step, limit });
    };
    let (first, last) = (number(first)?, number(last)?);
    let count = last.checked_sub(first)? / step.unwrap_or(1) + 1;
    Some(Array { count, first, step, limit })
}

fn number(text: &str) -> Option<u32> {
    text.bytes().all(|byte| byte.is_ascii_digit()).then(|| text.parse().ok())?
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn arrays_are_counts_or_first_and_last_with_step_and_limit() {
        let array = |text: &str| {
            let Array { count, first, step, limit } = text.parse().ok()?;
            Some((count, first, step, limit))
        };
        assert_eq!(array("10"), Some((10, 0, None, None)));
        assert_eq!(array("10%4"), Some((10, 0, None, Some(4))));
        assert_eq!(array("1-10"), Some((10, 1, None, None)));
        assert_eq!(array("5-5"), Some((1, 5, None, None)));
        assert_eq!(array("1-10:3%2"), Some((4, 1, Some(3), Some(2))));
        for text in ["0", "", "x", "-3", "3-1", "1-", "10:2", "1-5:0", "1-5%0", "1,3", "+3"] {
            assert_eq!(array(text), None, "{text}");
        }
    }
}
