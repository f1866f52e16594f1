//! What readers of a report rely on, checked on the smallest reports that show it.

use super::data::{Better, Column, Format, GroupFigures, Heat, JobCounts, Report, Run, Spread};
use super::{findings, format, html, render, table};
use expect_test::{Expect, expect};

/// A report from lines of text: the first names columns as `key:better:format`, the others runs.
fn report(text: &str) -> Report {
    let mut lines = text.lines().map(str::trim).filter(|line| !line.is_empty());
    let columns = lines.next().unwrap_or("").split_whitespace().map(column).collect();
    Report { title: "t".to_owned(), columns, runs: lines.map(run).collect(), ..Report::default() }
}

fn column(text: &str) -> Column {
    let parts: Vec<&str> = text.split(':').collect();
    Column {
        key: parts[0].to_owned(),
        label: parts[0].replace('_', " "),
        unit: String::new(),
        explanation: format!("meaning of {}", parts[0]),
        better: serde_json::from_str(&format!("\"{}\"", parts[1])).expect("a direction"),
        format: serde_json::from_str(&format!("\"{}\"", parts[2])).expect("a format"),
    }
}

fn run(line: &str) -> Run {
    let mut words = line.split_whitespace();
    let policy = words.next().expect("a line has words").to_owned();
    let values = words.map(|word| word.parse().ok()).collect();
    Run { policy, values, ..Run::default() }
}

fn check_table(text: &str, expected: Expect) {
    expected.assert_eq(&table::text(&report(text), false));
}

fn check_findings(text: &str, expected: Expect) {
    expected.assert_eq(&findings(&report(text)).join("\n"));
}

const THREE: &str = "
    avg_jct:lower:duration p99_wait:lower:duration GPUs_allocated:higher:percent \
    preemptions:lower:count done:neither:count
    fifo     31000 40000  0.81  0    4000
    sjf      11500 144000 0.86  0    4000
    priority 20000 90000  0.86  1812 3999
";

#[test]
fn table_aligns_numbers_and_marks_the_best_of_each_column() {
    check_table(
        THREE,
        expect![[r#"
                   avg     p99       GPUs
        policy     jct    wait  allocated  preemptions   done
        fifo     8.6 h  11.1 h*    81.0 %            0* 4,000
        sjf      3.2 h* 40.0 h     86.0 %*           0* 4,000
        priority 5.6 h  25.0 h     86.0 %*       1,812  3,999

        * best of its column
    "#]],
    );
}

#[test]
fn table_marks_the_best_in_bold_when_colour_is_on() {
    let text = table::text(&report("wait:lower:count\na 1\nb 2"), true);
    expect![[
        r#"policy wait\na      \u{1b}[1m   1*\u{1b}[0m\nb         2\n\n* best of its column\n"#
    ]]
    .assert_eq(&text.escape_debug().to_string());
}

#[test]
fn table_shows_a_dash_for_what_is_missing_and_never_calls_it_best() {
    check_table(
        "wait:lower:count\na nothing\nb NaN\nc inf\nd\ne 7\nf 9",
        expect![[r#"
            policy wait
            a         –
            b         –
            c         –
            d         –
            e         7*
            f         9

            * best of its column
        "#]],
    );
}

#[test]
fn table_marks_nothing_when_all_are_equal_or_alone() {
    check_table(
        "wait:lower:count share:higher:percent\na 5 nothing\nb 5 0.5",
        expect![[r#"
            policy wait   share
            a         5       –
            b         5  50.0 %
        "#]],
    );
}

#[test]
fn table_without_runs_says_so() {
    check_table(
        "wait:lower:count",
        expect![[r#"
        no runs to compare
    "#]],
    );
}

#[test]
fn table_lets_no_control_characters_through() {
    let mut report = report("wait:lower:count\na 1");
    report.runs[0].policy = "a\u{1b}[31m\nb".to_owned();
    expect![[r#"
        policy wait
        a[31mb    1
    "#]]
    .assert_eq(&table::text(&report, false));
}

/// Columns and values of a usual comparison, with values as far apart as policies make them.
const USUAL: &str = "avg_JCT:lower:duration median_JCT:lower:duration p99_JCT:lower:duration \
    avg_wait:lower:duration p99_wait:lower:duration makespan:lower:duration \
    GPUs_allocated:higher:percent GPUs_used:higher:percent fairness:higher:number \
    preemptions:lower:count jobs_done:neither:count
    fifo             45000 12282 514080 37674 504612 864000 0.810 0.575 0.914 0      4000
    max-min-fairness 9000  2676  109080 840   9876   829440 0.884 0.628 0.930 101530 4000
    srtf             8640  2118  104760 66    1116   803520 0.905 0.642 0.762 1204   4000
    sjf              8280  2076  93960  102   1650   812160 0.895 0.635 0.802 0      4000
";

fn widest_line(text: &str) -> usize {
    text.lines().map(|line| line.chars().count()).max().expect("the table has lines")
}

#[test]
fn table_of_the_usual_columns_is_one_block_of_at_most_120_characters() {
    let text = table::text(&report(USUAL), false);
    assert!(widest_line(&text) <= 120, "{} characters:\n{text}", widest_line(&text));
    assert_eq!(text.matches("\nfifo ").count(), 1, "more than one block:\n{text}");
}

#[test]
fn table_that_is_too_wide_goes_on_below() {
    let name = "a-policy-with-a-name-that-takes-most-of-the-window-and-leaves-little-for-numbers";
    let text = table::text(&report(&USUAL.replace("fifo", name)), false);
    assert!(widest_line(&text) <= 120, "{} characters:\n{text}", widest_line(&text));
    assert!(text.matches(name).count() > 1, "one block:\n{text}");
    assert!(text.contains("4,000"), "the last column is missing:\n{text}");
}

#[test]
fn durations_of_one_column_share_a_unit_unless_too_far_apart() {
    let written = |values: &[f64]| {
        let values: Vec<Option<f64>> = values.iter().copied().map(Some).collect();
        format::column(&values, Format::Duration).join(" | ")
    };
    let texts = [
        written(&[0.0, 0.5, 12.0]),
        written(&[3_100.0, 11_500.0, 31_000.0]),
        written(&[60.0, 5_000_000.0]),
        written(&[90_000.0]),
        written(&[-7_200.0]),
        written(&[0.0, 3_600.0 * 30.0, 3_600.0 * 40.0]),
        written(&[200.0, 3_600.0, 3_600.0 * 40.0]),
        written(&[0.002, 0.04, 86_400.0]),
    ];
    expect![[r#"
        0 s | 0.50 s | 12.00 s
        0.86 h | 3.19 h | 8.61 h
        60.0 s | 57.9 d
        25.0 h
        -2.0 h
        0 s | 30.0 h | 40.0 h
        3.3 min | 60.0 min | 40.0 h
        2.00 ms | 40.0 ms | 24.0 h"#]]
    .assert_eq(&texts.join("\n"));
}

#[test]
fn runs_of_one_policy_are_told_apart_by_settings_then_by_number() {
    let mut report = report("wait:lower:count\nlas 1\nlas 2\nlas 3\nfifo 4");
    report.runs[0].settings = "round 60".to_owned();
    report.runs[3].settings = "depth 5".to_owned();
    expect!["las (round 60), las, las #2, fifo (depth 5)"].assert_eq(&report.labels().join(", "));
}

#[test]
fn findings_name_the_winner_its_lead_and_what_it_gave_up() {
    check_findings(
        THREE,
        expect![[r#"
        sjf has the best average job completion time: 3.2 h, 63 % shorter than fifo (8.6 h).
        It is behind in p99 wait: 40.0 h, where fifo has 11.1 h."#]],
    );
}

#[test]
fn findings_say_what_a_bound_would_gain_and_never_call_it_best() {
    let told = |text: &str| {
        let mut report = report(text);
        report.runs[2].is_bound = true;
        assert_eq!(report.best(0), [false, true, false]);
        findings(&report).join("\n")
    };
    expect![[r#"
        b has the best average job completion time: 1.11 h, 44 % shorter than a (2.00 h).
        That is 88.9 % of what c would gain: 1.00 h."#]]
    .assert_eq(&told("avg_jct:lower:duration\na 7200\nb 4000\nc 3600"));
    expect![[r#"
        b has the best average job completion time: 0.83 h, 58 % shorter than a (2.00 h).
        Not even c does better: 1.00 h."#]]
    .assert_eq(&told("avg_jct:lower:duration\na 7200\nb 3000\nc 3600"));
}

#[test]
fn findings_name_those_who_wait_and_the_gpus_that_are_scarce() {
    let mut report = report("avg_jct:lower:duration\na 7200\nb 3600");
    let group = |name: &str, jobs: u64, waited_s: f64| GroupFigures {
        name: name.to_owned(),
        jobs,
        waited_s,
        ..GroupFigures::default()
    };
    report.runs[1].models = vec![group("V100", 100, 900.0), group("T4", 900, 100.0)];
    report.runs[1].queues = vec![group("q", 400, 700.0), group("r", 600, 300.0)];
    report.runs[1].heat = Heat {
        times_s: vec![0.0, 1.0, 2.0, 3.0],
        machines: vec!["a".to_owned(), "b".to_owned()],
        groups: vec!["V100".to_owned(), "T4".to_owned()],
        cells: vec![100, 90, 0, 0, 60, 255, 100, 100],
    };
    expect![[r#"
        b has the best average job completion time: 1.00 h, 50 % shorter than a (2.00 h).
        Under it jobs on GPU model V100 do 90.0 % of the waiting and are 10.0 % of the jobs."#]]
    .assert_eq(&findings(&report).join("\n"));
    report.runs[1].models.clear();
    report.runs[1].queues.truncate(1);
    expect![[r#"
        b has the best average job completion time: 1.00 h, 50 % shorter than a (2.00 h).
        While jobs arrive, 95.0 % of the V100 GPUs are held and 60.0 % of the T4 ones: more of the first, or jobs that do not insist on them, would help."#]]
    .assert_eq(&findings(&report).join("\n"));
}

#[test]
fn findings_compare_with_the_runner_up_when_the_first_run_wins() {
    check_findings(
        "avg_jct:lower:duration preemptions:lower:count\na 3600 0\nb 7200 1\nc 9000 0",
        expect![
            "a has the best average job completion time: 1.00 h, 50 % shorter than b (2.00 h)."
        ],
    );
}

#[test]
fn findings_call_a_small_lead_a_tie_and_shares_differ_in_points() {
    check_findings(
        "wait:lower:duration\na 10000\nb 9990",
        expect!["b has the best wait, 2.8 h, all but level with a (2.8 h)."],
    );
    check_findings(
        "used:higher:percent\na 0.5\nb 0.62",
        expect!["b has the best used: 62.0 %, 12.0 points higher than a (50.0 %)."],
    );
}

#[test]
fn findings_stay_sensible_without_values() {
    check_findings("wait:lower:count", expect!["There are no runs to compare."]);
    check_findings("wait:lower:count\nfifo 5", expect!["Only fifo ran: wait 5."]);
    check_findings(
        "wait:lower:count\nfifo NaN",
        expect!["Only fifo ran; there is nothing to compare it with."],
    );
    check_findings(
        "wait:lower:count\na NaN\nb nothing",
        expect!["No column has values that can be ranked."],
    );
    check_findings("wait:lower:count\na NaN\nb 4", expect!["b alone has a value for wait: 4."]);
    check_findings(
        "wait:higher:count\na 0\nb 4",
        expect!["b has the best wait: 4, where a has 0."],
    );
    check_findings(
        "done:neither:count\na 3\nb 4",
        expect!["No column has values that can be ranked."],
    );
}

#[test]
fn a_policy_that_rejects_more_than_another_is_best_in_nothing() {
    let mut report =
        report("avg_jct:lower:duration used:higher:percent\na 100 0.5\nb 10 0.9\nc 90 0.4");
    for (run, rejected) in report.runs.iter_mut().zip([0, 60, 0]) {
        run.jobs = JobCounts { submitted: 100, done: 100 - rejected, rejected };
    }
    report.runs[1].rejected_for = vec!["60: too large (job `x` and others)".to_owned()];
    expect![[r#"
        b rejected 60 of 100 jobs (60.0 %): 60: too large (job `x` and others).
        Only those that rejected fewest are called best: the others ran fewer jobs.
        Figures over so small a part of the jobs say little about the workload.
        c has the best average job completion time: 1.50 min, 10 % shorter than a (1.67 min).
        It is behind in used: 40.0 %, where a has 50.0 %."#]]
    .assert_eq(&findings(&report).join("\n"));
    assert_eq!(report.best(0), [false, false, true]);
    assert!(render(&report).contains("<p class=\"lead alarm\">b rejected 60 of 100"), "no alarm");
}

#[test]
fn a_handful_of_jobs_makes_no_finding() {
    let mut report = report("avg_jct:lower:duration\na 100\nb 10");
    for run in &mut report.runs {
        run.jobs = JobCounts { submitted: 19, done: 19, rejected: 0 };
    }
    expect!["Only 19 jobs finished: too few to tell policies apart by."]
        .assert_eq(&findings(&report).join("\n"));
}

const HOSTILE: &str = "</script><script>alert('x')</script><img src=x onerror=\"alert(1)\">&";

/// Every text field of a report, hostile.
fn hostile() -> Report {
    let hostile = || HOSTILE.to_owned();
    let mut report = report(THREE);
    report.title = hostile();
    report.subtitle = hostile();
    report.command = hostile();
    report.notes = vec![hostile()];
    for column in &mut report.columns {
        column.label = hostile();
        column.unit = hostile();
        column.explanation = hostile();
    }
    for run in &mut report.runs {
        run.policy = hostile();
        run.settings = hostile();
        run.summary = hostile();
        run.tenants = vec![GroupFigures { name: hostile(), jobs: 1, ..GroupFigures::default() }];
        run.heat = Heat {
            times_s: vec![0.0],
            machines: vec![hostile()],
            groups: vec![hostile()],
            cells: vec![50],
        };
    }
    report
}

#[test]
fn names_written_by_users_cannot_break_out_of_the_page() {
    let page = render(&hostile());
    let calm = render(&report(THREE));
    let count = |page: &str, tag: &str| page.matches(tag).count();
    assert_eq!(count(&page, "<img"), 0, "a name made an element");
    assert_eq!(count(&page, "onerror=\""), 0, "a name made an attribute");
    assert_eq!(count(&page, "<script"), count(&calm, "<script"), "a name opened a script");
    assert_eq!(count(&page, "</script"), count(&calm, "</script"), "a name closed a script");
}

#[test]
fn embedded_data_reads_back_as_it_was() {
    let embedded = html::embed(&HOSTILE);
    assert!(!embedded.contains(['<', '>', '&']), "unsafe in a script element: {embedded}");
    assert_eq!(serde_json::from_str::<String>(&embedded).expect("valid JSON"), HOSTILE);
}

#[test]
fn page_needs_nothing_from_outside() {
    let page = render(&hostile());
    let namespace = "http://www.w3.org/2000/svg";
    // A link to a place on the page itself fetches nothing.
    let elsewhere = page.replace(namespace, "").replace("href=\"#", "");
    for source in ["http://", "https://", "src=\"", "href=", "@import", "url("] {
        assert!(!elsewhere.contains(source), "the page refers to {source}");
    }
}

#[test]
fn page_of_an_empty_report_has_findings_and_no_tables() {
    let page = render(&Report::default());
    assert!(page.contains("There are no runs to compare."), "{page}");
    assert!(!page.contains("<table"), "a table without rows");
}

#[test]
fn page_marks_the_best_by_a_sign_and_a_word_and_leaves_holes_unsorted() {
    let page = render(&report("wait:lower:count\na 1\nb NaN\nc 2"));
    let cells: Vec<&str> = page.lines().filter(|line| line.starts_with("<tr><th")).collect();
    expect![[r#"
        <tr>
        <th scope="row">
        <span class="swatch c0 d0">
        </span>a</th>
        <td data-value="1" class="best">
        <span class="star" aria-hidden="true">★</span>1<span class="unseen"> best</span>
        </td>
        </tr>
        <tr>
        <th scope="row">
        <span class="swatch c1 d0">
        </span>b</th>
        <td>–</td>
        </tr>
        <tr>
        <th scope="row">
        <span class="swatch c2 d0">
        </span>c</th>
        <td data-value="2">2</td>
        </tr>"#]]
    .assert_eq(&cells.join("\n").replace("><", ">\n<"));
}

#[test]
fn tenants_beyond_the_largest_twenty_become_one_row() {
    let mut report = report("wait:lower:count\na 1");
    let tenant = |number: u64| GroupFigures {
        name: format!("tenant {number}"),
        jobs: number,
        gpu_hours: number as f64,
        lost_gpu_hours: 0.0,
        waited_s: number as f64 * number as f64,
        avg_jct_s: number as f64 * 10.0,
        avg_wait_s: number as f64,
        p99_wait_s: number as f64 * 2.0,
    };
    report.runs[0].tenants = (1..=22).map(tenant).collect();
    let page = render(&report);
    let others: Vec<&str> = page.lines().filter(|line| line.contains("class=\"others\"")).collect();
    // Two tenants remain, with 1 and 2 jobs: (1 * 10 + 2 * 20) / 3 = 16.7 s, or 0.28 min.
    expect![[r#"
        <tr class="others">
        <th scope="row">2 others</th>
        <td data-value="3">3</td>
        <td data-value="3">3.00</td>
        <td data-value="0">0</td>
        <td data-value="16.666666666666668">0.28 min</td>
        <td data-value="1.6666666666666667">1.67 s</td>
        <td data-value="4">4.0 s</td>
        <td data-value="5">5.0 s</td>
        </tr>"#]]
    .assert_eq(&others.join("\n").replace("><", ">\n<"));
}

#[test]
fn page_has_a_box_for_each_policy_and_none_where_no_job_is_done() {
    let mut report = report("wait:lower:count\na 1\nb 2");
    let spread = Spread { p5: 1.0, p25: 2.0, p50: 3.0, p75: 4.0, p95: 5.0, mean: 3.5 };
    report.runs[0].jct_spread = Some(spread);
    let page = render(&report);
    assert!(page.contains("data-chart=\"jct-box\""), "no figure");
    let boxes = page.split("\"boxes\":").nth(1).and_then(|rest| rest.split("]}").next());
    expect![[r#"
        [{"name":"a","slot":0,"spread":{"p5":1.0,"p25":2.0,"p50":3.0,"p75":4.0,"p95":5.0,"mean":3.5}},
        {"name":"b","slot":1,"spread":null}"#]].assert_eq(&boxes.expect("a chart of boxes").replace("},{", "},\n{"));
}

#[test]
fn base64_pads_to_fours() {
    let texts = ["", "f", "fo", "foo", "foob"].map(|text| html::base64(text.as_bytes()));
    assert_eq!(texts, ["", "Zg==", "Zm8=", "Zm9v", "Zm9vYg=="]);
    assert_eq!(html::base64(&[255, 0, 62]), "/wA+");
}

#[test]
fn reports_survive_a_round_trip_through_json() {
    let report = report(THREE);
    let json = serde_json::to_string(&report).expect("plain data");
    assert_eq!(serde_json::from_str::<Report>(&json).expect("valid JSON"), report);
    assert_eq!(report.columns[0].better, Better::Lower);
}
