//! `hostler top`: queue, nodes and GPUs, as they are now.

use std::io::IsTerminal;
use std::time::{Duration, Instant};

use anyhow::Result;
use hostler_live::api::JobPage;
use hostler_live::client::Client;
use hostler_live::host::NodeView;
use hostler_live::job::{JobState, JobView};
use ratatui::Frame;
use ratatui::crossterm::event::{self, Event, KeyCode, KeyEventKind};
use ratatui::layout::{Constraint, Layout, Rect};
use ratatui::style::{Color, Modifier, Style};
use ratatui::text::Line;
use ratatui::widgets::{Block, Cell, Gauge, Row, Table, TableState};
use serde::Serialize;

use super::nodes::{self, nodes_table};
use crate::cli::Top;
use crate::listing::{self, Look};
use crate::live::{asked, client, length, now, print_json, standing};
use crate::say::print;

/// Jobs that a picture shows at most.
const JOBS_MAX: u32 = 500;

/// All that is shown at a time.
#[derive(Serialize)]
struct Picture {
    nodes: Vec<NodeView>,
    jobs: Vec<JobView>,
    /// Whether there are more jobs than shown.
    more: bool,
}

/// Shows one picture after the other, or one where nobody watches.
pub fn run(args: &Top) -> Result<()> {
    let mut client = client()?;
    let picture = take(&mut client)?;
    if args.json {
        return print_json(&picture);
    }
    if !std::io::stdout().is_terminal() {
        print(format_args!("{}\n", headline(&picture)))?;
        print(format_args!("{}\n", nodes_table(&picture.nodes)))?;
        return Ok(print(listing::queue(&picture.jobs, Look::of_stdout(true)))?);
    }
    let mut terminal = ratatui::init();
    let watched = watch(&mut terminal, &mut client, picture, Duration::from_secs(args.every));
    ratatui::restore();
    watched
}

fn take(client: &mut Client) -> Result<Picture> {
    let nodes = client.get("/nodes")?;
    let page: JobPage = client.get(&format!("/jobs?limit={JOBS_MAX}"))?;
    Ok(Picture { nodes, jobs: page.jobs, more: page.next.is_some() })
}

fn watch(
    terminal: &mut ratatui::DefaultTerminal,
    client: &mut Client,
    mut picture: Picture,
    every: Duration,
) -> Result<()> {
    let mut chosen = TableState::default().with_selected(0);
    let mut fault = String::new();
    loop {
        terminal.draw(|frame| draw(frame, &picture, &fault, &mut chosen))?;
        let until = Instant::now() + every;
        while event::poll(until.saturating_duration_since(Instant::now()))? {
            let Event::Key(key) = event::read()? else { break };
            if key.kind != KeyEventKind::Press {
                continue;
            }
            match key.code {
                KeyCode::Char('q') | KeyCode::Esc => return Ok(()),
                KeyCode::Char('c') if key.modifiers.contains(event::KeyModifiers::CONTROL) => {
                    return Ok(());
                }
                KeyCode::Down | KeyCode::Char('j') => chosen.select_next(),
                KeyCode::Up | KeyCode::Char('k') => chosen.select_previous(),
                _ => {}
            }
            terminal.draw(|frame| draw(frame, &picture, &fault, &mut chosen))?;
        }
        // A daemon that is being started again is no reason to end.
        match take(client) {
            Ok(taken) => (picture, fault) = (taken, String::new()),
            Err(error) => fault = format!("{error:#}"),
        }
    }
}

fn draw(frame: &mut Frame, picture: &Picture, fault: &str, chosen: &mut TableState) {
    let height = (picture.nodes.len() as u16).saturating_add(3).min(frame.area().height / 3);
    let rows = [
        Constraint::Length(1),
        Constraint::Length(1),
        Constraint::Length(height.max(4)),
        Constraint::Fill(1),
        Constraint::Length(1),
    ];
    let [head, gauge, nodes, jobs, foot] = Layout::vertical(rows).areas(frame.area());
    frame.render_widget(Line::from(headline(picture)), head);
    let (used, all) = gpus(picture);
    let share = if all > 0.0 { (used / all).clamp(0.0, 1.0) } else { 0.0 };
    let bar = Gauge::default().ratio(share).label(format!("GPUs booked {used}/{all}"));
    frame.render_widget(bar.gauge_style(Style::new().fg(Color::Green)), gauge);
    draw_nodes(frame, nodes, picture);
    draw_jobs(frame, jobs, picture, chosen);
    let words = match fault {
        "" => Line::from("q ends, arrows move"),
        fault => Line::from(fault.to_owned()).style(Style::new().fg(Color::Red)),
    };
    frame.render_widget(words, foot);
}

fn draw_nodes(frame: &mut Frame, area: Rect, picture: &Picture) {
    let heads = ["NODE", "STATE", "MODEL", "GPUS", "CPUS", "MEMORY", "GPU USE", "JOBS", "AGENT"];
    let rows = picture.nodes.iter().map(|node| {
        let color = match node.health.as_str() {
            "up" => Color::Reset,
            "draining" => Color::Yellow,
            _ => Color::Red,
        };
        Row::new(nodes::row(node)).style(Style::new().fg(color))
    });
    let widths = [16, 9, 16, 9, 12, 14, 28, 5, 10].map(Constraint::Max);
    let table = Table::new(rows, widths).header(header(&heads));
    frame.render_widget(table.block(Block::bordered().title("nodes")), area);
}

fn draw_jobs(frame: &mut Frame, area: Rect, picture: &Picture, chosen: &mut TableState) {
    let heads = ["JOB", "NAME", "USER", "STATE", "GPUS", "TIME", "NODES", "WHY"];
    let now = now();
    let rows = picture.jobs.iter().map(|job| {
        let time = length(now - job.started.unwrap_or(job.submitted));
        let cells = [
            job.id.to_string(),
            job.name.clone(),
            job.user.clone(),
            standing(job.state, job.held_by),
            asked(job),
            time,
            job.nodes.join(","),
            job.reason.clone(),
        ];
        Row::new(cells.map(Cell::from)).style(Style::new().fg(color(job.state)))
    });
    let widths = [
        Constraint::Length(8),
        Constraint::Max(24),
        Constraint::Max(12),
        Constraint::Length(11),
        Constraint::Length(7),
        Constraint::Length(7),
        Constraint::Max(20),
        Constraint::Fill(1),
    ];
    let more = if picture.more { "jobs (more than fit)" } else { "jobs" };
    let table = Table::new(rows, widths)
        .header(header(&heads))
        .row_highlight_style(Style::new().add_modifier(Modifier::REVERSED))
        .block(Block::bordered().title(more));
    frame.render_stateful_widget(table, area, chosen);
}

fn header(heads: &[&'static str]) -> Row<'static> {
    Row::new(heads.to_vec()).style(Style::new().add_modifier(Modifier::BOLD))
}

fn color(state: JobState) -> Color {
    match state {
        JobState::Running => Color::Green,
        JobState::Starting | JobState::Stopping => Color::Yellow,
        JobState::Held => Color::DarkGray,
        JobState::Failed | JobState::TimedOut | JobState::Rejected => Color::Red,
        JobState::Queued | JobState::Finished | JobState::Cancelled => Color::Reset,
    }
}

fn gpus(picture: &Picture) -> (f64, f64) {
    let nodes = &picture.nodes;
    let used = nodes.iter().map(|node| node.gpus_used).sum();
    (used, nodes.iter().map(|node| f64::from(node.gpus)).sum())
}

fn headline(picture: &Picture) -> String {
    let count =
        |states: &[JobState]| picture.jobs.iter().filter(|job| states.contains(&job.state)).count();
    let (used, all) = gpus(picture);
    let running = count(&[JobState::Starting, JobState::Running, JobState::Stopping]);
    let (queued, held) = (count(&[JobState::Queued]), count(&[JobState::Held]));
    let more = if picture.more { ", more not shown" } else { "" };
    let nodes = picture.nodes.len();
    format!(
        "{nodes} nodes, {used}/{all} GPUs; {running} running, {queued} queued, {held} held{more}"
    )
}
