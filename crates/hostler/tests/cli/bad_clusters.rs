//! Cluster files that make no sense: each a clear error that names the place.

use crate::program::{Folder, Tables};

const MODEL: &str = "[[gpu_models]]\nname = 'T4'\nmem_mib = 16384\ntier = 1\n";
const NODES: &str = "[[nodes]]\ncount = 1\ngpu_model = 'T4'\ngpus = 4\ncpu = 8\nmem_gib = 32\n";

#[track_caller]
fn refused(file: &str, text: &str, words: &[&str]) {
    let folder = Folder::new();
    Tables::new().plain_job("a", 0).write(&folder);
    folder.write(file, text);
    folder.run(&format!("simulate --policy fifo --trace trace --cluster {file}")).fails(1, words);
}

#[track_caller]
fn refused_toml(from: &str, to: &str, words: &[&str]) {
    let good = format!("{MODEL}{NODES}");
    assert!(good.contains(from), "`{from}` is not in the file");
    refused("c.toml", &good.replace(from, to), words);
}

#[test]
fn senseless_numbers_and_keys_are_refused_with_their_place() {
    refused_toml("count = 1", "count = 0", &["c.toml: no nodes"]);
    refused_toml("count = 1", "count = -1", &["c.toml:6:", "-1"]);
    refused_toml("count = 1", "count = 1.5", &["c.toml:6:"]);
    refused_toml("count = 1", "count = 4000000000", &["c.toml: too many nodes: 4000000000"]);
    refused_toml("gpus = 4", "gpus = 129", &["c.toml: `gpus` of node group 1", "129"]);
    refused_toml("gpus = 4", "gpus = -4", &["c.toml:8:"]);
    refused_toml("gpus = 4", "gpu = 4", &["c.toml:8: unknown field `gpu`", "`gpus`"]);
    refused_toml("cpu = 8", "cpu = nan", &["c.toml: `cpu` of node group 1", "NaN"]);
    refused_toml("cpu = 8", "cpu = inf", &["c.toml: `cpu` of node group 1", "inf"]);
    refused_toml("cpu = 8", "cpu = -8", &["c.toml: `cpu` of node group 1", "-8"]);
    refused_toml("mem_gib = 32", "mem_gib = -1", &["c.toml: `mem_gib` of node group 1", "-1"]);
    refused_toml("mem_gib = 32", "mem_mib = 1\nmem_gib = 1", &["node group 1", "exactly one of"]);
    refused_toml("mem_mib = 16384", "mem_mib = -1", &["c.toml:3:"]);
    refused_toml("gpu_model = 'T4'", "gpu_model = 'T5'", &["node group 1", "`T5`"]);
    refused_toml("gpu_model = 'T4'", "", &["node group 1", "4 GPUs but no `gpu_model`"]);
    let islands = |number: u32| format!("gpus = 4\nislands = {number}");
    refused_toml("gpus = 4", &islands(0), &["c.toml: `islands` of node group 1", "1 to 4"]);
    refused_toml("gpus = 4", &islands(3), &["`islands` of node group 1", "a divisor of `gpus`, 4"]);
    refused_toml("gpus = 4", &islands(8), &["`islands` of node group 1", "1 to 4"]);
    refused_toml(MODEL, &MODEL.repeat(2), &["GPU model `T4` is defined twice"]);
    refused("c.toml", "", &["c.toml: no nodes"]);
    refused("c.toml", "[[nodes]\n", &["c.toml:1:"]);
}

#[test]
fn tables_of_nodes_are_refused_with_their_place() {
    let header = "node_id,gpu_model,gpu_count,cpu_milli,up_from_s,up_to_s\n";
    let table = |rows: &str| format!("{header}{rows}");
    refused("n.csv", "", &["n.csv: the file is empty"]);
    refused("n.csv", header, &["n.csv: no nodes"]);
    refused("n.csv", &table("a,T4,129,8000,,\n"), &["n.csv:2: column `gpu_count`", "129"]);
    refused("n.csv", &table("a,T4,-1,8000,,\n"), &["n.csv:2: column `gpu_count`", "negative"]);
    refused("n.csv", &table("a,T4,1,NaN,,\n"), &["n.csv:2: column `cpu_milli`", "`NaN`"]);
    refused("n.csv", &table("a,T4,1,1,,\na,T4,1,1,5,9\n"), &["n.csv:3:", "overlap"]);
    refused("n.csv", &table("a,T4,1,1,9,5\n"), &["n.csv:2:", "goes down before it comes up"]);
}

#[test]
fn tables_that_say_two_things_of_one_machine_are_refused() {
    let header = "node_id,gpu_model,gpu_count,gpu_mem_mib,cpu_milli,up_from_s,up_to_s,islands\n";
    let table = |rows: &str| format!("{header}{rows}");
    let grown = table("a,T4,1,,8000,0,9,\na,T4,8,,8000,9,,\n");
    refused("n.csv", &grown, &["n.csv:3: column `gpu_count`", "`a, see line 2`"]);
    let memory = table("a,T4,1,,8000,,,\nb,T4,1,16384,8000,,,\nc,T4,1,32768,8000,,,\n");
    let words = ["n.csv:4: column `gpu_mem_mib`", "`32768 for T4, but 16384 in line 3`"];
    refused("n.csv", &memory, &words);
    for (islands, gpus) in [(3, 8), (16, 8), (0, 8), (2, 0)] {
        let rows = format!("a,T4,{gpus},,8000,,,{islands}\n");
        let value = format!("`{islands} islands of {gpus} GPUs`");
        refused("n.csv", &table(&rows), &["n.csv:2: column `islands`", &value]);
    }
}

#[test]
fn a_node_that_does_not_say_its_gpu_memory_has_that_of_its_model() {
    let folder = Folder::new();
    let mut tables = Tables::new();
    tables.nodes = "node_id,gpu_model,gpu_count,gpu_mem_mib,cpu_milli\n\
                    a,T4,1,,8000\nb,T4,1,16384,8000\n"
        .to_owned();
    tables.tasks = "job_id,count,gpu_milli,gpu_mem_mib,duration_ms\nbig,1,1000,20000,10000\n\
                    fits,1,1000,16384,10000\nsmall,1,1000,1,10000\n"
        .to_owned();
    tables.jobs += "big,ada,,0,,\nfits,ada,,0,,\nsmall,ada,,0,,\n";
    tables.write(&folder);
    let run = folder.json("simulate --policy fifo --trace trace --json");
    assert_eq!((&run["jobs_rejected"], &run["jobs_done"]), (&1.into(), &2.into()));
}

#[test]
fn more_models_than_a_cluster_may_have_are_refused() {
    let mut table = "node_id,gpu_model,gpu_count,cpu_milli\n".to_owned();
    for at in 0..65 {
        table += &format!("n{at},M{at},1,8000\n");
    }
    refused("n.csv", &table, &["n.csv: too many GPU models: 65; at most 64"]);
    let folder = Folder::new();
    Tables { nodes: table, ..Tables::new() }.plain_job("a", 0).write(&folder);
    let words = ["too many GPU models: 65; at most 64"];
    folder.run("simulate --policy fifo --trace trace").fails(1, &words);
}

#[test]
fn a_cluster_that_is_not_there_is_refused_by_name() {
    let folder = Folder::new();
    Tables::new().plain_job("a", 0).write(&folder);
    let simulate = |cluster: &str| {
        folder.run(&format!("simulate --policy fifo --trace trace --cluster {cluster}"))
    };
    simulate("missing.toml").fails(1, &["cannot read `missing.toml`"]);
    simulate("missing.csv").fails(1, &["cannot read `missing.csv`"]);
    std::fs::create_dir(folder.path("empty")).expect("a folder can be made");
    simulate("empty").fails(1, &["no `nodes.csv` in `empty`"]);
    folder.write("binary.toml", b"\xff\xfe");
    simulate("binary.toml").fails(1, &["cannot read `binary.toml`", "not UTF-8"]);
}
