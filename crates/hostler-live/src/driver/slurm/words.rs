//! Slurm's ways to write things down: lists of nodes, tasks of arrays, GPUs of a node or a job.
//!
//! What other versions write is read as well; what nobody understands is an absent value, or a
//! sentence that says so.

/// Names that one list may stand for: more than any cluster has nodes.
const NAMES_MAX: usize = 100_000;

/// Tasks that one array may stand for: the most that Slurm allows, rounded up.
const TASKS_MAX: usize = 1_000_000;

/// GPUs of a job or of a node.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Gpus {
    /// How many.
    pub count: u32,
    /// Their model, where it is named.
    pub model: Option<String>,
}

/// What is asked for each GPU, as in `gres:gpu:4` or `gres/gpu=2048M`; none where nothing is.
pub fn for_each_gpu(said: &str) -> Option<u64> {
    let mut parts = said.split([',', ';']).filter(|part| part.contains("gpu"));
    let amount = parts.next()?.rsplit([':', '=']).next()?;
    let digits = amount.trim_end_matches(|letter: char| letter.is_ascii_alphabetic());
    let factor = if amount.ends_with('G') { 1024 } else { 1 };
    digits.parse::<u64>().ok()?.checked_mul(factor)
}

/// The names that a list stands for, as in `n[01-03,7],login`; none where it makes no sense.
pub fn nodes(list: &str) -> Option<Vec<String>> {
    let mut names = Vec::new();
    for word in split_outside(list, ',') {
        for name in expand(word)? {
            names.push(name);
            if names.len() > NAMES_MAX {
                return None;
            }
        }
    }
    Some(names)
}

/// The parts of a text between separators that stand outside of brackets; empty ones left out.
fn split_outside(text: &str, separator: char) -> Vec<&str> {
    let (mut depth, mut from, mut parts) = (0_u32, 0, Vec::new());
    for (at, letter) in text.char_indices() {
        match letter {
            '[' | '(' => depth += 1,
            ']' | ')' => depth = depth.saturating_sub(1),
            _ if letter == separator && depth == 0 => {
                parts.push(&text[from..at]);
                from = at + separator.len_utf8();
            }
            _ => {}
        }
    }
    parts.push(&text[from..]);
    parts.retain(|part| !part.is_empty());
    parts
}

/// What one word with brackets stands for.
fn expand(word: &str) -> Option<Vec<String>> {
    let Some((before, rest)) = word.split_once('[') else {
        return Some(vec![word.to_owned()]);
    };
    let (inside, after) = rest.split_once(']')?;
    let tails = expand(after)?;
    let mut names = Vec::new();
    for range in inside.split(',') {
        let (first, last) = range.split_once('-').unwrap_or((range, range));
        let width = first.len();
        let (first, last): (u64, u64) = (first.parse().ok()?, last.parse().ok()?);
        for number in first..=last {
            for tail in &tails {
                names.push(format!("{before}{number:0width$}{tail}"));
                if names.len() > NAMES_MAX {
                    return None;
                }
            }
        }
    }
    Some(names)
}

/// Tasks of an array that wait, as in `1,5-9:2%4`, and how many of it may run at once.
pub fn tasks(text: &str) -> Option<(Vec<u32>, Option<u32>)> {
    let (ranges, most) = match text.split_once('%') {
        Some((ranges, most)) => (ranges, Some(most.parse().ok()?)),
        None => (text, None),
    };
    let mut tasks = Vec::new();
    for range in ranges.split(',') {
        let (range, step) = match range.split_once(':') {
            Some((range, step)) => (range, step.parse().ok().filter(|step| *step > 0)?),
            None => (range, 1),
        };
        let (first, last) = range.split_once('-').unwrap_or((range, range));
        let (first, last): (u32, u32) = (first.parse().ok()?, last.parse().ok()?);
        let range = (first..=last).step_by(step);
        tasks.extend(range.take(TASKS_MAX + 1));
        if tasks.len() > TASKS_MAX {
            return None;
        }
    }
    Some((tasks, most.filter(|most| *most > 0)))
}

/// GPUs in what a job asks for, as in `gres:gpu:v100:2` or `gres/gpu:a100=4`. Other things in it
/// are left out; several models are a fault, as are parts of a GPU.
pub fn gpus(list: &str) -> Result<Gpus, String> {
    let part = things(list).map(|(kind, _)| kind).find(|kind| PARTS.contains(kind));
    match part {
        Some(part) => Err(format!("parts of a GPU (`{part}`) are not placed by Hostler")),
        None => whole_gpus(list),
    }
}

/// GPUs that a node has, as in `gpu:v100:8(S:0-1),shard:v100:32`. How Slurm may cut them up is no
/// business of those who want whole ones.
pub fn whole_gpus(list: &str) -> Result<Gpus, String> {
    let mut found = Gpus::default();
    for (_, fields) in things(list).filter(|(kind, _)| *kind == "gpu") {
        let (model, count) = match fields[..] {
            [] => (None, "1"),
            [one] if one.parse::<u32>().is_ok() => (None, one),
            [model] => (Some(model), "1"),
            [model, count, ..] => (Some(model), count),
        };
        let fault = || format!("`{}` is no number of GPUs", sentence(list));
        let count = count.parse().map_err(|_| fault())?;
        let other = found.model.as_deref().is_some_and(|known| Some(known) != model);
        if found.count > 0 && (other || found.model.is_none() != model.is_none()) {
            return Err(format!("GPUs of several models at once: `{}`", sentence(list)));
        }
        found.count = found.count.saturating_add(count);
        found.model = model.map(str::to_owned);
    }
    Ok(found)
}

/// What stands for a part of a GPU.
const PARTS: [&str; 2] = ["shard", "mps"];

/// What a list holds besides cores: of which kind, and what is said of it.
fn things(list: &str) -> impl Iterator<Item = (&str, Vec<&str>)> {
    split_outside(list, ',').into_iter().map(|word| {
        let word = word.strip_prefix("gres:").or(word.strip_prefix("gres/")).unwrap_or(word);
        let word = word.split('(').next().unwrap_or_default();
        let mut fields = word.split([':', '=']);
        (fields.next().unwrap_or_default(), fields.collect())
    })
}

/// GPUs among what was given to a job, as in `cpu=2,gres/gpu=2,gres/gpu:p100=2`: the sum stands
/// beside the models there.
pub fn gpus_of_tres(list: &str) -> Gpus {
    let value = |word: &str| word.rsplit_once('=').and_then(|(_, count)| count.parse().ok());
    let words = || list.split(',').filter(|word| word.starts_with("gres/gpu"));
    let models: Vec<&str> = words().filter(|word| word.starts_with("gres/gpu:")).collect();
    let model = match models[..] {
        [one] => one["gres/gpu:".len()..].split('=').next().map(str::to_owned),
        _ => None,
    };
    let sum = words().find(|word| word.starts_with("gres/gpu=")).and_then(value);
    let count = sum.unwrap_or_else(|| models.iter().filter_map(|word| value(word)).sum());
    Gpus { count, model }
}

/// A number of such a list, as in `mem=500G` (in MiB) or `node=2`.
pub fn of_tres(list: &str, name: &str) -> Option<u64> {
    let value = list.split(',').find_map(|word| word.strip_prefix(name)?.strip_prefix('='))?;
    mebibytes(value)
}

/// A number with a unit of memory, which is MiB where none is named.
pub fn mebibytes(text: &str) -> Option<u64> {
    let (number, unit) = match text.find(|letter: char| letter.is_ascii_alphabetic()) {
        Some(at) => text.split_at(at),
        None => (text, "M"),
    };
    let factor = match unit.chars().next()?.to_ascii_uppercase() {
        'K' => 1.0 / 1024.0,
        'M' => 1.0,
        'G' => 1024.0,
        'T' => 1024.0 * 1024.0,
        'P' => 1024.0 * 1024.0 * 1024.0,
        _ => return None,
    };
    let number: f64 = number.parse().ok().filter(|number| *number >= 0.0)?;
    Some((number * factor).ceil() as u64)
}

/// What Slurm said, as it may be shown on a line: no more of it than helps.
pub fn sentence(said: &str) -> String {
    let line = said.lines().map(str::trim).rfind(|line| !line.is_empty());
    let line = line.unwrap_or_default();
    let line = line.split_once(": error: ").map_or(line, |(_, said)| said);
    line.chars().filter(|letter| !letter.is_control()).take(300).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lists_of_nodes_are_read_with_their_zeros() {
        let names = |list: &str| nodes(list).map(|names| names.join(" "));
        assert_eq!(names("v1").as_deref(), Some("v1"));
        assert_eq!(names("p[1-2],v1").as_deref(), Some("p1 p2 v1"));
        assert_eq!(names("n[008-011,20]x").as_deref(), Some("n008x n009x n010x n011x n20x"));
        assert_eq!(names("r[1-2]n[3-4]").as_deref(), Some("r1n3 r1n4 r2n3 r2n4"));
        assert_eq!(names("").as_deref(), Some(""));
        for wrong in ["n[1-", "n[a-b]", "n[1-99999999]"] {
            assert_eq!(nodes(wrong), None, "{wrong}");
        }
    }

    #[test]
    fn tasks_of_arrays_are_read_with_step_and_limit() {
        assert_eq!(tasks("1-4%2"), Some((vec![1, 2, 3, 4], Some(2))));
        assert_eq!(tasks("0,5-9:2"), Some((vec![0, 5, 7, 9], None)));
        assert_eq!(tasks("3%0"), Some((vec![3], None)));
        for wrong in ["", "1-", "1-3:0", "0-99999999", "1-3..."] {
            assert_eq!(tasks(wrong), None, "{wrong}");
        }
    }

    #[test]
    fn gpus_are_read_as_every_version_writes_them() {
        let of = |count, model: &str| {
            Ok(Gpus { count, model: (!model.is_empty()).then(|| model.to_owned()) })
        };
        for (text, wanted) in [
            ("gres:gpu:p100:2", of(2, "p100")),
            ("gres:gpu:2", of(2, "")),
            ("gres/gpu:a100:4", of(4, "a100")),
            ("gres/gpu=3", of(3, "")),
            ("gres:gpu", of(1, "")),
            ("gres:gpu:v100", of(1, "v100")),
            ("gpu:v100:8(S:0-1)", of(8, "v100")),
            ("gpu:v100:8(IDX:0-1,4),nic:2", of(8, "v100")),
            ("(null)", of(0, "")),
            ("", of(0, "")),
            ("craynetwork:4", of(0, "")),
        ] {
            assert_eq!(gpus(text), wanted, "{text}");
        }
        assert!(gpus("gpu:v100:4,gpu:a100:4").unwrap_err().contains("several models"));
        assert!(gpus("gres:shard:2").unwrap_err().contains("parts of a GPU"));
        assert!(gpus("gpu:v100:1,mps:50").unwrap_err().contains("parts of a GPU"));
        assert!(gpus("gpu:v100:many").is_err());
    }

    #[test]
    fn a_node_whose_gpus_may_be_cut_up_has_whole_ones() {
        let of = |count, model: &str| Ok(Gpus { count, model: Some(model.to_owned()) });
        assert_eq!(whole_gpus("gpu:v100:8(S:0-1),shard:v100:32(S:0-1)"), of(8, "v100"));
        assert_eq!(whole_gpus("gpu:a100:4,mps:400"), of(4, "a100"));
        assert_eq!(whole_gpus("shard:4"), Ok(Gpus::default()));
        let cut = "gpu:a100_1g.5gb:2,gpu:a100_3g.20gb:1";
        assert!(whole_gpus(cut).unwrap_err().contains("several models"));
    }

    #[test]
    fn what_was_given_is_read_from_its_list() {
        let list = "cpu=1,mem=500G,node=1,billing=1,gres/gpu=2,gres/gpu:t4=2";
        assert_eq!(gpus_of_tres(list), Gpus { count: 2, model: Some("t4".to_owned()) });
        assert_eq!((of_tres(list, "mem"), of_tres(list, "cpu")), (Some(512_000), Some(1)));
        assert_eq!(gpus_of_tres("cpu=1,gres/gpu:a=1,gres/gpu:b=2").count, 3);
        assert_eq!(gpus_of_tres("cpu=1"), Gpus::default());
        assert_eq!(
            (mebibytes("1.5G"), mebibytes("10"), mebibytes("x")),
            (Some(1536), Some(10), None)
        );
    }
}
