//! Models that go through a file, and files that are no models.

use expect_test::expect;
use hostler_core::units::Time;

use super::*;

fn names(users: &[&str], groups: &[&str], gpu_models: &[&str]) -> Names {
    fn numbered<Id>(list: &[&str], id: fn(u32) -> Id) -> BTreeMap<String, Id> {
        list.iter().enumerate().map(|(at, name)| ((*name).to_owned(), id(at as u32))).collect()
    }
    Names {
        users: numbered(users, TenantId),
        groups: numbered(groups, GroupId),
        gpu_models: numbered(gpu_models, ModelId),
        ..Names::default()
    }
}

fn features(names: &Names, user: &str, group: &str, model: &str, gpus: u64) -> Features {
    Features {
        tenant: names.users[user],
        group: names.groups.get(group).copied(),
        models: names.gpu_models.get(model).map_or(ModelSet::ALL, |model| ModelSet::one(*model)),
        gpu_milli: gpus * 1000,
        cpu_milli: 1000,
        mem_mib: 1024,
        tasks: 1,
        ..Features::default()
    }
}

/// Ada's jobs take 10 s on a V100 and 30 s on a T4; Bob's take 500 s on anything.
fn train(kind: ModelKind) -> ModelFile {
    let names = names(&["ada", "bob"], &["daily"], &["V100", "T4"]);
    let job = |user, group, model, run| Past {
        features: features(&names, user, group, model, 1),
        submitted: Time::ZERO,
        ended: Time::ZERO,
        run: Span::from_secs(run),
    };
    let few = [
        job("ada", "daily", "V100", 10),
        job("ada", "daily", "T4", 30),
        job("bob", "", "any", 500),
    ];
    ModelFile::train(kind, 1, few.repeat(40).iter(), &names)
}

#[test]
fn a_model_is_read_as_it_was_written_and_bound_to_other_numbers() {
    // The same names in another order, one of them missing, others added.
    let here = names(&["eve", "bob", "ada"], &["weekly", "daily"], &["T4", "A10", "V100"]);
    for kind in [ModelKind::Median, ModelKind::Cart, ModelKind::Blend] {
        let file = train(kind);
        let read = ModelFile::parse(&file.to_json()).unwrap();
        assert_eq!(read, file);
        let model = read.bind(&here);
        let secs = |user, group, gpu| {
            model.belief(&features(&here, user, group, gpu, 1)).unwrap().run.secs_f64().round()
        };
        for (said, run) in [
            (secs("ada", "daily", "V100"), 10.0),
            (secs("ada", "daily", "T4"), 30.0),
            (secs("bob", "", "any"), 500.0),
        ] {
            // What a blend is ranked by counts a little of what wider voices say.
            let off = if kind == ModelKind::Blend { 0.5 * run } else { 0.0 };
            assert!(f64::abs(said - run) <= off, "{kind:?}: {said} for {run}");
        }
    }
    // Nobody knows Eve: all jobs count, a third each of 10, 30 and 500.
    let model = train(ModelKind::Median).bind(&here);
    let eve = model.belief(&features(&here, "eve", "weekly", "A10", 1)).unwrap();
    assert_eq!(eve.run, Span::from_secs(30));
}

#[test]
fn a_model_file_is_plain() {
    let text = train(ModelKind::Median).to_json();
    let text = text.replace("},{", "},\n{").replace("[{", "[\n{").replace(",\"users", ",\n\"users");
    expect![[r#"
        {"format":"hostler-model","version":1,"kind":"median","jobs":120,
        "users":["ada","bob"],"groups":["daily"],"gpu_sets":[["V100"],["T4"]],"medians":[
        {"user":0,"group":0,"gpus":0,"run":10000000,"spread":0},
        {"user":0,"group":0,"gpus":1,"run":30000000,"spread":0},
        {"user":0,"group":0,"run":20000000,"spread":10000000},
        {"group":0,"run":20000000,"spread":10000000},
        {"user":0,"run":20000000,"spread":10000000},
        {"user":1,"run":500000000,"spread":0},
        {"run":30000000,"spread":245000000}]}"#]]
    .assert_eq(&text);
}

#[test]
fn a_file_that_is_no_model_is_refused_with_what_is_wrong() {
    let median = train(ModelKind::Median).to_json();
    let cart = train(ModelKind::Cart).to_json();
    let (before, _) = cart.split_once("\"tree\":").unwrap();
    let with_tree = |tree: &str| format!("{before}\"tree\":{tree}}}");
    let leaf = r#"{"leaf":{"middle":0,"spread":0}}"#;
    let split = |feature: usize, above: usize| {
        let branches = format!(r#""below":2,"above":{above}"#);
        format!(r#"{{"split":{{"feature":{feature},"at_most":1,{branches}}}}}"#)
    };
    let texts = [
        String::new(),
        "{}".to_owned(),
        r#"{"format":"other","version":1}"#.to_owned(),
        r#"{"format":"hostler-model","version":2}"#.to_owned(),
        r#"{"format":"hostler-model","version":1,"kind":"x"}"#.to_owned(),
        median.replacen("\"user\":0", "\"user\":9", 1),
        median.replacen("\"user\":0,", "", 1),
        median.replacen("median\"", "cart\"", 1),
        with_tree(r#"[]"#),
        with_tree(&format!("[{},{leaf},{leaf}]", split(0, 0))),
        with_tree(&format!("[{},{leaf},{leaf}]", split(0, 3))),
        with_tree(&format!("[{leaf},{},{leaf},{leaf}]", split(WIDTH, 3))),
    ];
    let faults = texts.map(|text| ModelFile::parse(&text).unwrap_err().to_string());
    let faults = faults.map(|fault| fault.replace("; `hostler predict train` writes one", ""));
    expect![[r#"
        no model of run times: EOF while parsing a value at line 1 column 0
        no model of run times: missing field `format` at line 1 column 2
        no model of run times: `format`: `other`, not `hostler-model`
        `version` of the model: 2; this program reads 1; train it again
        no model of run times: unknown variant `x`, expected one of `median`, `cart`, `blend` at line 1 column 48
        `medians` of the model: row 0 is about no known user, group or GPUs
        `medians` of the model: row 0 is about no known user, group or GPUs
        `tree` of the model: 0 nodes; 1 to 1048576 are allowed
        `tree` of the model: node 0 leads nowhere; train it again
        `tree` of the model: node 0 leads nowhere; train it again
        `tree` of the model: node 0 leads nowhere; train it again
        `tree` of the model: node 1 leads nowhere; train it again"#]]
    .assert_eq(&faults.join("\n"));
}
