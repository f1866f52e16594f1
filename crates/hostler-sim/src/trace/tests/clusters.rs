//! Cluster files.

use std::path::Path;

use expect_test::{Expect, expect};

use super::super::cluster::{Capacity, known_tier};
use super::super::table::Link;
use super::super::{Cluster, read_cluster, scaled};
use super::{NODES, Scratch, testdata, told};

fn check_toml(text: &str, expected: Expect) {
    expected.assert_eq(&told(Cluster::parse(text, "mine.toml")));
}

const GROUP: &str = "[[nodes]]\ncount = 2\ncpu = 0.5\nmem_mib = 100\n";

#[test]
fn the_pai_cluster_has_the_published_size() {
    let cluster = Cluster::pai();
    let Capacity { nodes, gpus, cpu_milli, .. } = cluster.capacity();
    assert_eq!((nodes, gpus, cpu_milli), (1897, 6742, 156_576_000));
    let name = |row: usize| cluster.text.get(cluster.nodes[row].node_id);
    assert_eq!((name(0), name(83), name(1896)), ("cpu-0001", "misc-0001", "v100m32-0135"));
    // Both V100 groups count on: 59 + 45.
    assert_eq!(name(1897 - 136), "v100-0104");
    assert_eq!(cluster.nodes[1896].gpu_mem_mib.get(), Some(32768));
    assert_eq!(cluster.nodes[1896].link, Link::Nvlink);
    assert_eq!(cluster.gpu_models.len(), 5);
}

#[test]
fn a_tenth_of_the_pai_cluster_keeps_its_mix() {
    let small = scaled(&Cluster::pai(), 10);
    let count = |model: &str, gib: u32| {
        let is_kind = |node: &&super::super::NodeRow| {
            small.text.get(node.gpu_model) == model && node.mem_mib.or(0) == gib * 1024
        };
        small.nodes.iter().filter(is_kind).count()
    };
    let counts = [
        count("", 512),
        count("MISC", 512),
        count("T4", 512),
        count("P100", 512),
        count("V100", 512),
        count("V100", 384),
        count("V100M32", 384),
    ];
    assert_eq!(counts, [8, 28, 50, 80, 6, 5, 14]);
    assert_eq!(scaled(&Cluster::pai(), 1).nodes, Cluster::pai().nodes);
    assert_eq!(scaled(&Cluster::pai(), 1000).nodes.len(), 7);
}

#[test]
fn scaling_keeps_all_intervals_of_the_nodes_it_keeps() {
    let scratch = Scratch::new();
    let mut text = "node_id,gpu_count,cpu_milli,up_from_s,up_to_s\n".to_owned();
    for node in ["a", "b", "c", "d"] {
        text.push_str(&format!("{node},0,1000,0,5\n"));
    }
    text.push_str("b,0,1000,6,7\nd,0,1000,6,7\n");
    let cluster = read_cluster(&scratch.write("nodes.csv", text)).unwrap();
    let half = scaled(&cluster, 2);
    let names: Vec<_> = half.nodes.iter().map(|node| half.text.get(node.node_id)).collect();
    assert_eq!(names, ["a", "b", "b"]);
}

#[test]
fn the_lecture_cluster_is_that_of_the_lecture_trace() {
    let file = Cluster::lecture();
    let table = read_cluster(&testdata("lecture")).unwrap();
    assert_eq!(file.capacity(), table.capacity());
    assert_eq!(file.capacity(), Capacity { nodes: 1, gpus: 2, cpu_milli: 8000, mem_mib: 65536 });
    assert_eq!(file.text.get(file.nodes[0].node_id), table.text.get(table.nodes[0].node_id));
}

#[test]
fn fractions_of_cores_and_all_optional_keys_are_read() {
    let text = "[[gpu_models]]\nname = 'RTX A/1'\nmem_mib = 1\ntier = 3\n\
                idle_watts = 20\npeak_watts = 300\n\
                [[nodes]]\ncount = 1\ngpu_model = 'RTX A/1'\ngpus = 4\ncpu = 0.5\nmem_gib = 0.5\n\
                islands = 2\nrack = 'r'\npool = 'p'\nlabels = { zone = 'a', b = 'c=d' }\n\
                nic_mbps = 10\nidle_watts = 5\npeak_watts = 6\n";
    let cluster = Cluster::parse(text, "mine.toml").unwrap();
    let node = &cluster.nodes[0];
    let texts = [node.node_id, node.rack, node.pool, node.labels].map(|id| cluster.text.get(id));
    assert_eq!(texts, ["rtx-a-1-0001", "r", "p", "b=c=d;zone=a"]);
    let numbers = [node.cpu_milli, node.mem_mib, node.islands, node.nic_mbps, node.idle_watts];
    assert_eq!(numbers.map(|number| number.or(0)), [500, 512, 2, 10, 5]);
    assert_eq!(cluster.gpu_models[0].peak_watts, Some(300));
}

#[test]
#[expect(clippy::too_many_lines, reason = "most of it is recorded text")]
fn bad_cluster_files_are_named() {
    check_toml(
        &format!("{GROUP}gpu = 4\n"),
        expect![[r#"
        mine.toml:5: unknown field `gpu`, expected one of `count`, `name`, `gpu_model`, `gpus`, `cpu`, `mem_mib`, `mem_gib`, `link`, `islands`, `rack`, `pool`, `labels`, `nic_mbps`, `idle_watts`, `peak_watts`
    "#]],
    );
    check_toml(
        "name = \"x\"\n",
        expect![[r#"
            mine.toml: no nodes; add at least one (`[[nodes]]` with `count`, or a row)
        "#]],
    );
    check_toml(
        &format!("{GROUP}gpus = 4\n"),
        expect![[r#"
        mine.toml: node group 1 has 4 GPUs but no `gpu_model`
    "#]],
    );
    check_toml(
        &format!("{GROUP}gpus = 4\ngpu_model = 'H100'\n"),
        expect![[r#"
            mine.toml: node group 1 names GPU model `H100` without a `[[gpu_models]]` entry
        "#]],
    );
    check_toml(
        &format!("{GROUP}mem_gib = 4\n"),
        expect![[r#"
        mine.toml: node group 1 needs exactly one of `mem_mib` and `mem_gib`
    "#]],
    );
    check_toml(
        "[[nodes]]\ncount = 1\ncpu = nan\nmem_mib = 1\n",
        expect![[r#"
            mine.toml: `cpu` of node group 1 out of range: NaN; expected 0 to 1000000
        "#]],
    );
    check_toml(
        "[[nodes]]\ncount = 1\ncpu = -1\nmem_mib = 1\n",
        expect![[r#"
        mine.toml: `cpu` of node group 1 out of range: -1; expected 0 to 1000000
    "#]],
    );
    check_toml(
        "[[nodes]]\ncount = 1\ncpu = 1\nmem_gib = inf\n",
        expect![[r#"
            mine.toml: `mem_gib` of node group 1 out of range: inf; expected 0 to 4194303
        "#]],
    );
    check_toml(
        "[[nodes]]\ncount = -1\ncpu = 1\nmem_gib = 1\n",
        expect![[r#"
        mine.toml:2: invalid value: integer `-1`, expected u32
    "#]],
    );
    check_toml(
        "[[nodes]]\ncount = 1000001\ncpu = 1\nmem_gib = 1\n",
        expect![[r#"
            mine.toml: too many nodes: 1000001; at most 1000000
        "#]],
    );
    check_toml(
        &format!("{GROUP}link = 'ethernet'\n"),
        expect![[r#"
        mine.toml:5: unknown variant `ethernet`, expected one of `none`, `pcie`, `nvlink`
    "#]],
    );
    check_toml(
        &format!("{GROUP}labels = {{ 'a=b' = 'c' }}\n"),
        expect![[r#"
        mine.toml: `labels` of node group 1 out of range: a=b; expected keys without `=` and `;`
    "#]],
    );
    check_toml(
        &format!("{GROUP}islands = 2\n"),
        expect![[r#"
        mine.toml: `islands` of node group 1 out of range: 2; expected 1 to 1
    "#]],
    );
    let model = "[[gpu_models]]\nname = 'T4'\nmem_mib = 1\ntier = 0\n";
    check_toml(
        &format!("{model}{model}{GROUP}"),
        expect![[r#"
        mine.toml: GPU model `T4` is defined twice
    "#]],
    );
    check_toml(
        "",
        expect![[r#"
            mine.toml: no nodes; add at least one (`[[nodes]]` with `count`, or a row)
        "#]],
    );
}

#[test]
fn two_numbers_are_machines_and_gpus_of_each() {
    let cluster = read_cluster(Path::new("32x8")).unwrap();
    let capacity = cluster.capacity();
    assert_eq!((capacity.nodes, capacity.gpus, &*cluster.name), (32, 256, "32x8"));
    for wrong in ["0x8", "4x9999", "99999999x8"] {
        let text = told(read_cluster(Path::new(wrong)));
        assert!(text.starts_with(wrong), "{text}");
    }
    for file in ["32x", "x8", "32x8x4", "32.toml"] {
        assert!(told(read_cluster(Path::new(file))).contains(file), "{file}");
    }
}

#[test]
fn a_table_of_nodes_gives_models_with_known_tiers() {
    let scratch = Scratch::new();
    scratch.write("nodes.csv", NODES);
    let cluster = read_cluster(scratch.0.path()).unwrap();
    assert_eq!(cluster.gpu_models.len(), 1);
    let model = &cluster.gpu_models[0];
    assert_eq!((model.name.as_str(), Some(model.tier)), ("V100", known_tier("V100")));
    assert!(known_tier("T4") < known_tier("V100"), "tiers rise with speed");
    assert_eq!(known_tier("unheard-of"), None);
    let empty = scratch.write("other.csv", "node_id,gpu_count,cpu_milli\n");
    expect![[r#"
        other.csv: no nodes; add at least one (`[[nodes]]` with `count`, or a row)
    "#]]
    .assert_eq(&told(read_cluster(&empty)));
}
