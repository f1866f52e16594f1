//! Stories of an agent: what happens at which millisecond, and what it does.

mod suspensions;

use std::fmt::Write as _;

use expect_test::{Expect, expect};

use hostler_core::id::{JobId, NodeId};

use super::*;
use crate::image::Runtime;
use crate::wire::{EndNotes, TaskExit};

/// Plays lines like `1200 start 7`; a line `crash` drops the agent, `power` also what was not
/// synced, `full` fills the disk. Prints what the agent does.
fn check(story: &str, expected: Expect) {
    let (mut core, _) = AgentCore::open(machine(), MemoryDisk::default());
    let mut text = String::new();
    for line in story.lines().map(str::trim).filter(|line| !line.is_empty()) {
        writeln!(text, "{line}").unwrap();
        let words: Vec<&str> = line.split_whitespace().collect();
        let effects = match words[..] {
            ["crash" | "power"] => {
                let mut disk = core.into_disk();
                if line == "power" {
                    disk.lose_power();
                }
                let (next, effects) = AgentCore::open(machine(), disk);
                core = next;
                effects
            }
            ["full"] => {
                core.disk.full = true;
                Vec::new()
            }
            _ => core.handle(words[0].parse().unwrap(), inputs(&words[1..])),
        };
        effects.iter().for_each(|effect| writeln!(text, "    {}", show(effect)).unwrap());
    }
    expected.assert_eq(&text);
}

/// Words like `start 7 , start 8`: several inputs of one call.
fn inputs(words: &[&str]) -> Vec<AgentInput> {
    words.split(|word| *word == ",").map(input).collect()
}

fn input(words: &[&str]) -> AgentInput {
    let number = |text: &str| text.parse::<u64>().unwrap();
    let lease = |text: &str| LeaseId(text.parse().unwrap());
    let message = match *words {
        ["connect", session] => return AgentInput::Connected { session: number(session) },
        ["lost", session] => return AgentInput::Disconnected { session: number(session) },
        ["tick"] => return AgentInput::Tick,
        ["use", percent] => return AgentInput::GpuUse(vec![percent.parse().unwrap()]),
        ["uses", name, milli] => {
            return AgentInput::LeaseUse(vec![(lease(name), milli.parse().unwrap())]);
        }
        ["step", name, step] => {
            let (lease, step) = (lease(name), number(step));
            return AgentInput::Progress { lease, step, total: None, saved: false };
        }
        ["runs", name] => {
            return AgentInput::Seen { lease: lease(name), stage: Stage::Running };
        }
        ["suspended", name, of] => {
            let stage = Stage::Suspended { of: lease(of) };
            return AgentInput::Seen { lease: lease(name), stage };
        }
        ["refuses", name] => {
            let fault = "not supported".to_owned();
            return AgentInput::SuspendRefused { lease: lease(name), fault };
        }
        ["ends", name, code] => {
            let exit = TaskExit { rank: 0, code: Some(code.parse().unwrap()), signal: None };
            let stage = Stage::Ended {
                exits: vec![exit],
                interrupted: false,
                gpu_milli: None,
                notes: EndNotes::default(),
            };
            return AgentInput::Seen { lease: lease(name), stage };
        }
        ["gone", name] => {
            let stage = Stage::Ended {
                exits: vec![],
                interrupted: true,
                gpu_milli: None,
                notes: EndNotes::default(),
            };
            return AgentInput::Seen { lease: lease(name), stage };
        }
        [_, "welcome"] => ToAgent::Welcome { node: NodeId(0), beat_ms: 1000, fence_ms: 10_000 },
        [_, "refused"] => ToAgent::Refused { fault: "token `x` is revoked".into(), retry: false },
        [_, "seen", beat] => ToAgent::BeatSeen { number: number(beat) },
        [_, "start", name] => ToAgent::Start(Box::new(order(lease(name)))),
        [_, "start", name, "from", of] => {
            let order = StartOrder { resumes: Some(lease(of)), ..order(lease(name)) };
            ToAgent::Start(Box::new(order))
        }
        [_, "resume", name] => ToAgent::Resume { lease: lease(name) },
        [_, "suspend", name] => {
            ToAgent::Stop { lease: lease(name), how: StopHow::Suspend, grace_ms: 500 }
        }
        [_, "stop", name] => {
            ToAgent::Stop { lease: lease(name), how: StopHow::Checkpoint, grace_ms: 500 }
        }
        [_, "forget", name] => ToAgent::Forget { lease: lease(name) },
        [_, "read", name] => ToAgent::ReadOutput {
            request: 1,
            lease: lease(name),
            rank: 0,
            stream: Stream::Stdout,
            offset: -10,
        },
        _ => panic!("no such input: {words:?}"),
    };
    AgentInput::MachineOverrides { session: number(words[0]), message }
}

fn show(effect: &AgentEffect) -> String {
    match effect {
        AgentEffect::Send { session, message } => match message {
            FromAgent::Hello { held, last_job, .. } => {
                let held: Vec<String> = held.iter().map(show_report).collect();
                let jobs = last_job.map_or_else(String::new, |job| format!(" files up to {job:?}"));
                format!("{session} hello [{}]{jobs}", held.join(", "))
            }
            FromAgent::Report(report) => format!("{session} report {}", show_report(report)),
            FromAgent::Beat { number, gpu_use, .. } => {
                format!("{session} beat {number} {gpu_use:?}")
            }
            FromAgent::Progress { lease, step, .. } => format!("{session} {lease:?} step {step}"),
            FromAgent::Programs(programs) => format!("{session} {programs:?}"),
            FromAgent::SuspendRefused { lease, fault } => {
                format!("{session} cannot suspend {lease:?}: {fault}")
            }
            FromAgent::Output { .. } => panic!("the core reads no output"),
        },
        AgentEffect::Launch(order) => format!("launch {:?}", order.lease),
        other => format!("{other:?}"),
    }
}

fn show_report(report: &LeaseReport) -> String {
    let stage = match &report.stage {
        Stage::Ended { exits, interrupted, gpu_milli, .. } => {
            let codes: Vec<_> = exits.iter().filter_map(|exit| exit.code).collect();
            let used = gpu_milli.map_or_else(String::new, |milli| format!(" used {milli}"));
            format!("ended {codes:?}{}{used}", if *interrupted { " interrupted" } else { "" })
        }
        other => format!("{other:?}").to_lowercase(),
    };
    format!("{:?} {stage}", report.lease)
}

fn machine() -> Machine {
    Machine {
        name: "n".into(),
        version: String::new(),
        address: "127.0.0.1".into(),
        cpu_milli: 1000,
        mem_mib: 1,
        gpu_model: String::new(),
        gpu_mem_mib: 0,
        gpus: 0,
        rack: 0,
        ..Machine::default()
    }
}

fn order(lease: LeaseId) -> StartOrder {
    StartOrder {
        lease,
        job: JobId(1),
        restart: 0,
        command: vec!["true".into()],
        env: BTreeMap::new(),
        workdir: String::new(),
        tasks: vec![],
        world_size: 1,
        master_addr: String::new(),
        master_port: 1,
        cpu_milli: 0,
        mem_mib: 0,
        array_index: None,
        grace_ms: 0,
        tenant: 0,
        limit_ms: None,
        script: String::new(),
        person: None,
        umask: None,
        image: String::new(),
        mounts: Vec::new(),
        interactive: None,
        resumes: None,
    }
}

#[test]
fn a_lease_starts_once_and_is_reported_until_it_is_forgotten() {
    check(
        "
        0 connect 1
        5 1 welcome
        6 1 start 7
        7 1 start 7
        8 runs 7
        9 1 start 7
        10 tick
        30 ends 7 3
        1010 tick
        2010 1 forget 7
        2011 tick
        2020 1 start 7
        ",
        expect![[r#"
            0 connect 1
                1 hello []
            5 1 welcome
                StillAlive(Alive { sent_ms: 0, fence_ms: 10000 })
            6 1 start 7
                launch lease7
            7 1 start 7
                1 report lease7 starting
            8 runs 7
                1 report lease7 running
            9 1 start 7
                1 report lease7 running
            10 tick
                1 beat 1 []
                1 report lease7 running
            30 ends 7 3
                1 report lease7 ended [3]
            1010 tick
                1 beat 2 []
                1 report lease7 ended [3]
            2010 1 forget 7
                Forgotten { lease: lease7 }
            2011 tick
                1 beat 3 []
            2020 1 start 7
                1 report lease7 unknown
        "#]],
    );
}

#[test]
fn the_end_of_a_lease_tells_its_mean_use_of_gpus_while_it_ran() {
    check(
        "
        0 connect 1
        5 1 welcome
        6 1 start 7 , 1 start 8
        7 uses 7 900
        8 runs 7 , runs 8
        9 uses 7 200
        10 uses 7 401 , uses 9 1000
        11 ends 7 0
        12 uses 7 1000
        13 ends 8 0
        14 tick
        ",
        expect![[r#"
            0 connect 1
                1 hello []
            5 1 welcome
                StillAlive(Alive { sent_ms: 0, fence_ms: 10000 })
            6 1 start 7 , 1 start 8
                launch lease7
                launch lease8
            7 uses 7 900
            8 runs 7 , runs 8
                1 report lease7 running
                1 report lease8 running
            9 uses 7 200
            10 uses 7 401 , uses 9 1000
            11 ends 7 0
                1 report lease7 ended [0] used 300
            12 uses 7 1000
            13 ends 8 0
                1 report lease8 ended [0]
            14 tick
                1 beat 1 []
                1 report lease7 ended [0] used 300
                1 report lease8 ended [0]
        "#]],
    );
}

#[test]
fn an_agent_that_was_killed_reports_what_it_holds_and_starts_nothing_again() {
    check(
        "
        0 connect 1
        1 1 welcome
        2 1 start 7 , 1 start 8
        crash
        5 runs 7
        6 connect 2
        7 2 welcome
        8 2 start 7
        9 2 start 8
        10 gone 8
        ",
        expect![[r#"
            0 connect 1
                1 hello []
            1 1 welcome
                StillAlive(Alive { sent_ms: 0, fence_ms: 10000 })
            2 1 start 7 , 1 start 8
                launch lease7
                launch lease8
            crash
                Watch { lease: lease7 }
                Watch { lease: lease8 }
            5 runs 7
            6 connect 2
                2 hello [lease7 running, lease8 starting]
            7 2 welcome
                StillAlive(Alive { sent_ms: 6, fence_ms: 10000 })
            8 2 start 7
                2 report lease7 running
            9 2 start 8
                2 report lease8 starting
            10 gone 8
                2 report lease8 ended [] interrupted
        "#]],
    );
}

#[test]
fn a_loss_of_power_does_not_undo_that_a_lease_was_taken_on() {
    check(
        "
        0 connect 1
        1 1 welcome
        2 1 start 7
        power
        5 connect 2
        6 2 welcome
        7 2 start 7
        ",
        expect![[r#"
            0 connect 1
                1 hello []
            1 1 welcome
                StillAlive(Alive { sent_ms: 0, fence_ms: 10000 })
            2 1 start 7
                launch lease7
            power
                Watch { lease: lease7 }
            5 connect 2
                2 hello [lease7 starting]
            6 2 welcome
                StillAlive(Alive { sent_ms: 5, fence_ms: 10000 })
            7 2 start 7
                2 report lease7 starting
        "#]],
    );
}

#[test]
fn a_stop_that_overtakes_its_start_keeps_it_from_running() {
    check(
        "
        0 connect 1
        1 1 welcome
        2 1 stop 7
        3 1 start 7
        ",
        expect![[r#"
            0 connect 1
                1 hello []
            1 1 welcome
                StillAlive(Alive { sent_ms: 0, fence_ms: 10000 })
            2 1 stop 7
                1 report lease7 unknown
            3 1 start 7
                1 report lease7 unknown
        "#]],
    );
}

#[test]
fn a_stop_is_told_again_when_the_shim_shows_up() {
    check(
        "
        0 connect 1
        1 1 welcome
        2 1 start 7 , 1 stop 7
        9 runs 7
        20 gone 7
        21 1 stop 7
        ",
        expect![[r#"
            0 connect 1
                1 hello []
            1 1 welcome
                StillAlive(Alive { sent_ms: 0, fence_ms: 10000 })
            2 1 start 7 , 1 stop 7
                launch lease7
                Stop { lease: lease7, how: Checkpoint, grace_ms: 500 }
            9 runs 7
                Stop { lease: lease7, how: Checkpoint, grace_ms: 500 }
                1 report lease7 running
            20 gone 7
                1 report lease7 ended [] interrupted
            21 1 stop 7
                1 report lease7 ended [] interrupted
        "#]],
    );
}

#[test]
fn the_fence_counts_from_the_sending_of_the_last_answered_beat() {
    check(
        "
        0 connect 1
        50 1 welcome
        50 tick
        900 1 seen 1
        901 1 seen 1
        9999 1 start 7
        10050 1 start 8
        ",
        expect![[r#"
            0 connect 1
                1 hello []
            50 1 welcome
                StillAlive(Alive { sent_ms: 0, fence_ms: 10000 })
            50 tick
                1 beat 1 []
            900 1 seen 1
                StillAlive(Alive { sent_ms: 50, fence_ms: 10000 })
            901 1 seen 1
            9999 1 start 7
                launch lease7
            10050 1 start 8
        "#]],
    );
}

#[test]
fn a_silent_daemon_is_left_and_late_words_of_an_old_connection_count_for_nothing() {
    check(
        "
        0 connect 1
        9999 tick
        10000 tick
        10001 1 welcome
        10002 connect 2
        10003 2 welcome
        10003 tick
        11003 tick
        12003 tick
        13003 tick
        14003 tick
        14004 connect 3
        14005 2 start 7
        14006 3 start 7
        ",
        expect![[r#"
            0 connect 1
                1 hello []
            9999 tick
            10000 tick
                Close { session: 1, fault: "the daemon did not answer within 10000 ms", retry: true }
            10001 1 welcome
            10002 connect 2
                2 hello []
            10003 2 welcome
                StillAlive(Alive { sent_ms: 10002, fence_ms: 10000 })
            10003 tick
                2 beat 1 []
            11003 tick
                2 beat 2 []
            12003 tick
                2 beat 3 []
            13003 tick
                2 beat 4 []
            14003 tick
                Close { session: 2, fault: "the daemon did not answer 4 beats", retry: true }
            14004 connect 3
                3 hello []
            14005 2 start 7
            14006 3 start 7
        "#]],
    );
}

#[test]
fn a_lease_that_goes_on_is_reported_ever_more_rarely() {
    check(
        "
        0 connect 1
        0 1 welcome
        0 1 start 7
        1 tick
        2 1 seen 1
        1001 tick
        1002 1 seen 2
        2001 tick
        2002 1 seen 3
        3001 tick
        ",
        expect![[r#"
            0 connect 1
                1 hello []
            0 1 welcome
                StillAlive(Alive { sent_ms: 0, fence_ms: 10000 })
            0 1 start 7
                launch lease7
            1 tick
                1 beat 1 []
                1 report lease7 starting
            2 1 seen 1
                StillAlive(Alive { sent_ms: 1, fence_ms: 10000 })
            1001 tick
                1 beat 2 []
            1002 1 seen 2
                StillAlive(Alive { sent_ms: 1001, fence_ms: 10000 })
            2001 tick
                1 beat 3 []
                1 report lease7 starting
            2002 1 seen 3
                StillAlive(Alive { sent_ms: 2001, fence_ms: 10000 })
            3001 tick
                1 beat 4 []
        "#]],
    );
}

#[test]
fn an_order_that_cannot_be_written_down_is_not_started() {
    check(
        "
        0 connect 1
        0 1 welcome
        full
        1 1 start 7
        2 1 start 7
        ",
        expect![[r#"
            0 connect 1
                1 hello []
            0 1 welcome
                StillAlive(Alive { sent_ms: 0, fence_ms: 10000 })
            full
            1 1 start 7
                1 report lease7 notstarted { fault: "cannot write down the order: no storage space; look at the agent's disk", of_machine: true }
            2 1 start 7
                1 report lease7 notstarted { fault: "cannot write down the order: no storage space; look at the agent's disk", of_machine: true }
        "#]],
    );
}

#[test]
fn a_running_lease_is_not_forgotten() {
    check(
        "
        0 connect 1
        0 1 welcome
        1 1 start 7
        2 1 forget 7
        3 1 read 7
        4 ends 7 0
        5 1 read 7
        ",
        expect![[r#"
            0 connect 1
                1 hello []
            0 1 welcome
                StillAlive(Alive { sent_ms: 0, fence_ms: 10000 })
            1 1 start 7
                launch lease7
            2 1 forget 7
            3 1 read 7
                ReadOutput { session: 1, request: 1, lease: lease7, rank: 0, stream: Stdout, offset: -10, ended: false }
            4 ends 7 0
                1 report lease7 ended [0]
            5 1 read 7
                ReadOutput { session: 1, request: 1, lease: lease7, rank: 0, stream: Stdout, offset: -10, ended: true }
        "#]],
    );
}

#[test]
fn the_last_progress_is_said_again_to_a_daemon_that_was_away() {
    check(
        "
        0 connect 1
        0 1 welcome
        1 1 start 7
        2 step 7 10
        3 lost 1
        4 step 7 20
        5 step 9 1
        6 connect 2
        7 2 welcome
        8 use 40
        8 tick
        ",
        expect![[r#"
            0 connect 1
                1 hello []
            0 1 welcome
                StillAlive(Alive { sent_ms: 0, fence_ms: 10000 })
            1 1 start 7
                launch lease7
            2 step 7 10
                1 lease7 step 10
            3 lost 1
            4 step 7 20
            5 step 9 1
            6 connect 2
                2 hello [lease7 starting] files up to job1
            7 2 welcome
                StillAlive(Alive { sent_ms: 6, fence_ms: 10000 })
                2 lease7 step 20
            8 use 40
            8 tick
                2 beat 1 [40]
                2 report lease7 starting
        "#]],
    );
}

#[test]
fn a_refused_agent_does_not_try_again() {
    check(
        "0 connect 1\n1 1 refused",
        expect![[r#"
        0 connect 1
            1 hello []
        1 1 refused
            Close { session: 1, fault: "token `x` is revoked", retry: false }
    "#]],
    );
}

#[test]
fn an_agent_takes_on_no_more_leases_than_it_can_tell_of() {
    let (mut core, _) = AgentCore::open(machine(), MemoryDisk::default());
    core.handle(0, vec![AgentInput::Connected { session: 1 }]);
    let said = |message| AgentInput::MachineOverrides { session: 1, message };
    let welcome = ToAgent::Welcome { node: NodeId(0), beat_ms: 1000, fence_ms: 60_000 };
    let most = u32::try_from(LEASES_MAX).unwrap();
    let starts = (0..=most).map(|lease| ToAgent::Start(Box::new(order(LeaseId(lease)))));
    let effects = core.handle(1, [welcome].into_iter().chain(starts).map(said).collect());
    let launched = effects.iter().filter(|effect| matches!(effect, AgentEffect::Launch(_)));
    assert_eq!(launched.count(), LEASES_MAX);
    let last = core.held().last().unwrap();
    assert!(
        matches!(last.stage, Stage::NotStarted { of_machine: true, .. }),
        "the daemon is told: {last:?}"
    );
    let greeting = core.handle(2, vec![AgentInput::Connected { session: 2 }]);
    let [AgentEffect::Send { message, .. }] = &greeting[..] else { panic!("{greeting:?}") };
    let bytes = serde_json::to_vec(message).unwrap().len();
    assert!(bytes < crate::limits::MESSAGE_BYTES_MAX, "a greeting has {bytes} bytes");
}

#[test]
fn what_runs_images_is_told_once_it_is_known() {
    let machine = Machine { untried: true, ..machine() };
    let (mut core, _) = AgentCore::open(machine, MemoryDisk::default());
    let greeting = |effects: &[AgentEffect]| {
        let [AgentEffect::Send { message: FromAgent::Hello { machine, .. }, .. }] = effects else {
            panic!("{effects:?}")
        };
        (machine.untried, machine.runtimes.clone())
    };
    let effects = core.handle(0, vec![AgentInput::Connected { session: 1 }]);
    assert_eq!(greeting(&effects), (true, Vec::new()));
    // Though the greeting was not answered: it left before.
    let podman = Runtime { name: "podman".to_owned(), version: "4.3.1".to_owned() };
    let programs = Programs { runtimes: vec![podman.clone()], unusable: Vec::new() };
    let effects = core.handle(1, vec![AgentInput::Tried(programs.clone())]);
    let message = FromAgent::Programs(programs);
    assert_eq!(effects, [AgentEffect::Send { session: 1, message }]);
    let effects = core.handle(2, vec![AgentInput::Connected { session: 2 }]);
    assert_eq!(greeting(&effects), (false, vec![podman]));
}
