//! Job files: YAML, TOML or JSON with the names and units of the flags.

use std::path::Path;

use anyhow::{Context, Result, anyhow, bail};
use hostler_live::job::{Indices, JobRequest};
use serde_json::{Map, Value, json};

use super::fields::{FIELDS, Field, Kind};
use crate::cli::{Array, grace, mebibytes, seconds};

/// Reads a job file, by its ending TOML or YAML (of which JSON is a part).
pub fn read(file: &Path, text: &str) -> Result<JobRequest> {
    let name = file.display();
    let is_toml = file.extension().is_some_and(|ending| ending == "toml");
    let read: Result<Value> = match is_toml {
        true => toml::from_str(text).map_err(anyhow::Error::from),
        false => serde_yaml_ng::from_str(text).map_err(anyhow::Error::from),
    };
    let request = read.and_then(|value| match value {
        Value::Object(fields) => request_of(fields),
        _ => bail!("a job file names fields, and a script begins with `#!`"),
    });
    request.with_context(|| format!("`{name}` is no job file"))
}

fn request_of(fields: Map<String, Value>) -> Result<JobRequest> {
    let mut request = Map::new();
    for (key, value) in fields {
        let name = key.replace('-', "_");
        let field = FIELDS.iter().find(|field| field.name == name || field.api == name);
        let field = field.ok_or_else(|| unknown(&key))?;
        let value = with_units(field, value).with_context(|| format!("`{key}`"))?;
        for (name, value) in value {
            if request.insert(name.clone(), value).is_some() {
                bail!("`{key}` is said twice");
            }
        }
    }
    Ok(serde_json::from_value(Value::Object(request))?)
}

fn unknown(key: &str) -> anyhow::Error {
    let names: Vec<&str> = FIELDS.iter().map(|field| field.name).collect();
    anyhow!("unknown field `{key}`; known: {}", names.join(", "))
}

/// A field as the interface has it; some are more than one there.
fn with_units(field: &Field, value: Value) -> Result<Vec<(String, Value)>> {
    if value.is_null() {
        bail!("it has no value");
    }
    let own = |value: Value| Ok(vec![(field.api.to_owned(), value)]);
    match (field.kind, value) {
        (Kind::Command, Value::String(line)) => own(json!(["sh", "-c", line])),
        (Kind::Texts | Kind::Events, Value::String(text)) => own(json!([text])),
        (Kind::After, value @ (Value::String(_) | Value::Number(_))) => own(json!([value])),
        (Kind::Time, Value::String(text)) => {
            let read = if field.name == "grace" { grace(&text) } else { seconds(&text) };
            own(json!(read.map_err(|fault| anyhow!(fault))?))
        }
        (Kind::Memory, Value::String(text)) => {
            own(json!(mebibytes(&text).map_err(|fault| anyhow!(fault))?))
        }
        (Kind::Array, Value::String(text)) => {
            let array: Array = text.parse().map_err(|fault: String| anyhow!(fault))?;
            let mut parts = vec![("array".to_owned(), json!(array.count))];
            if array.first > 0 {
                parts.push(("array_first".to_owned(), json!(array.first)));
            }
            parts.extend(array.step.map(|step| ("array_step".to_owned(), json!(step))));
            parts.extend(array.limit.map(|limit| ("array_limit".to_owned(), json!(limit))));
            Ok(parts)
        }
        (Kind::Nodes, value) => {
            Ok(vec![("tasks".to_owned(), value), ("apart".to_owned(), json!(true))])
        }
        (_, value) => own(value),
    }
}

/// A job as a file that says the same.
pub fn text(request: &JobRequest) -> Result<String> {
    let JobRequest { array, .. } = *request;
    let (sent, usual) = (fields_of(request)?, fields_of(&JobRequest::default())?);
    let mut table = toml::Table::new();
    for field in FIELDS.iter().filter(|field| !field.api.is_empty()) {
        let Some(value) = sent.get(field.api).filter(|value| !value.is_null()) else { continue };
        if usual.get(field.api) == Some(value) {
            continue;
        }
        let value = match field.kind {
            Kind::Time => json!(time(value.as_u64().unwrap_or(0))),
            Kind::Array => json!(array_words(request)),
            _ => value.clone(),
        };
        table.insert(field.name.to_owned(), toml::Value::try_from(value)?);
    }
    if request.apart {
        table.remove("apart");
        table.remove("tasks");
        table.insert("nodes".to_owned(), i64::from(request.tasks).into());
    }
    if array > 0 {
        ["array_first", "array_step", "array_limit"].iter().for_each(|name| {
            table.remove(*name);
        });
    }
    Ok(toml::to_string_pretty(&table)?)
}

fn fields_of(request: &JobRequest) -> Result<Value> {
    Ok(serde_json::to_value(request)?)
}

/// The longest unit that leaves nothing over.
fn time(seconds: u64) -> String {
    let units = [(86_400, 'd'), (3600, 'h'), (60, 'm')];
    let unit = units.iter().find(|(unit, _)| seconds > 0 && seconds.is_multiple_of(*unit));
    unit.map_or_else(|| format!("{seconds}s"), |(unit, name)| format!("{}{name}", seconds / unit))
}

fn array_words(request: &JobRequest) -> String {
    let indices = Indices::of(request);
    let last = indices.at(indices.count.saturating_sub(1));
    let mut words = format!("{}-{last}", indices.first);
    if let Some(step) = request.array_step {
        words += &format!(":{step}");
    }
    if let Some(limit) = request.array_limit {
        words += &format!("%{limit}");
    }
    words
}

#[cfg(test)]
mod tests {
    use expect_test::expect;

    use super::*;

    fn yaml(text: &str) -> Result<JobRequest> {
        read(Path::new("job.yaml"), text)
    }

    #[test]
    fn names_and_units_of_flags_and_of_the_interface_mean_the_same() {
        let flags = "command: echo $HOME\ngpus: 2\nmax_time: 12h\nnodes: 3\nshare: willing\n\
                     gpu-model: H200\nmem: 4096\ngrace: 0s\nafter: over:17\narray: 1-9:2%2\n";
        let old = "command: [sh, -c, 'echo $HOME']\ngpus: 2\nmax_secs: 43200\ntasks: 3\n\
                   apart: true\nsharing: willing\ngpu_models: [H200]\nmem_mib: 4096\n\
                   grace_secs: 0\nafter: ['over:17']\narray: 5\narray_first: 1\narray_step: 2\n\
                   array_limit: 2\n";
        assert_eq!(yaml(flags).unwrap(), yaml(old).unwrap());
    }

    #[test]
    fn what_is_printed_says_the_same() {
        let job = yaml(
            "command: [python, train.py]\ngpus: 0.5\nmax_time: 90m\nestimate: 61s\nnodes: 2\n\
             env: {A: 'b c'}\nafter: [17, 'failed:18_2']\narray: 4\npriority: -3\n",
        )
        .unwrap();
        let printed = text(&job).unwrap();
        expect![[r#"
            after = [
                17,
                "failed:18_2",
            ]
            array = "0-3"
            command = [
                "python",
                "train.py",
            ]
            estimate = "61s"
            gpus = 0.5
            max_time = "90m"
            nodes = 2
            priority = -3

            [env]
            A = "b c"
        "#]]
        .assert_eq(&printed);
        assert_eq!(read(Path::new("job.toml"), &printed).unwrap(), job);
    }

    #[test]
    fn mistakes_are_told_with_what_is_known() {
        let fault = |text: &str| format!("{:#}", yaml(text).unwrap_err());
        assert!(
            fault("gpu: 1").contains("unknown field `gpu`; known: name, command, script, gpus")
        );
        assert!(fault("max_time: 12x").contains("write 90s, 15m, 12h or 2d"));
        assert!(fault("max_time: 1h\nmax_secs: 3").contains("is said twice"));
        assert!(fault("gpus:").contains("`gpus`: it has no value"));
        assert!(fault("just text").contains("a script begins with `#!`"));
        assert!(fault("array: 0-").contains("is no array"));
    }
}
