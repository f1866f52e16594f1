//! A self-contained page: text made safe, style and scripts inlined, charts as JSON.
//!
//! Names in a report are written by users, so nothing reaches the page except through
//! [`escape`] or [`embed`]. The page forbids itself every network access.

use super::chart::Chart;
use serde::Serialize;
use std::collections::BTreeMap;

const STYLE: &str = include_str!("assets/report.css");
const SCRIPTS: [&str; 4] = [
    include_str!("assets/plots.js"),
    include_str!("assets/boxes.js"),
    include_str!("assets/heat.js"),
    include_str!("assets/page.js"),
];
/// Nothing may be fetched; what the page needs is inside it.
const POLICY: &str = "default-src 'none'; style-src 'unsafe-inline'; script-src 'unsafe-inline'";
/// Runs before the first paint: a page opened with `#dark` or `#light` does not flash.
const FIRST: &str = "document.documentElement.classList.add('js');\
    if(/^#(dark|light)$/.test(location.hash))\
    document.documentElement.dataset.theme=location.hash.slice(1);";

/// Puts a page around `body`; figures with `data-chart="key"` show the chart of that key.
pub fn document(title: &str, body: &str, charts: &BTreeMap<String, Chart>) -> String {
    let title = escape(title);
    let charts = embed(charts);
    let scripts: String =
        SCRIPTS.iter().map(|code| format!("<script>\n{code}</script>\n")).collect();
    format!(
        "<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n\
         <meta http-equiv=\"Content-Security-Policy\" content=\"{POLICY}\">\n\
         <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n\
         <meta name=\"color-scheme\" content=\"light dark\">\n<title>{title}</title>\n\
         <style>\n{STYLE}</style>\n<script>{FIRST}</script>\n</head>\n<body>\n{body}\n\
         <script type=\"application/json\" id=\"charts\">{charts}</script>\n\
         {scripts}</body>\n</html>\n"
    )
}

/// Makes text safe between tags and in quoted attributes.
pub fn escape(text: &str) -> String {
    let mut safe = String::with_capacity(text.len());
    for character in text.chars() {
        match character {
            '&' => safe.push_str("&amp;"),
            '<' => safe.push_str("&lt;"),
            '>' => safe.push_str("&gt;"),
            '"' => safe.push_str("&quot;"),
            '\'' => safe.push_str("&#39;"),
            other => safe.push(other),
        }
    }
    safe
}

/// JSON that cannot end the script element it stands in.
pub fn embed(value: &impl Serialize) -> String {
    let json =
        serde_json::to_string(value).expect("chart data has string keys and no maps of maps");
    json.replace('<', "\\u003c").replace('>', "\\u003e").replace('&', "\\u0026")
}

/// Standard base64 with padding.
pub fn base64(bytes: &[u8]) -> String {
    const ALPHABET: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let mut text = String::with_capacity(bytes.len().div_ceil(3) * 4);
    for chunk in bytes.chunks(3) {
        let byte = |index: usize| u32::from(chunk.get(index).copied().unwrap_or(0));
        let word = byte(0) << 16 | byte(1) << 8 | byte(2);
        for position in 0..4 {
            let sextet = (word >> (18 - 6 * position)) & 63;
            let filled = position <= chunk.len();
            text.push(if filled { char::from(ALPHABET[sextet as usize]) } else { '=' });
        }
    }
    text
}
