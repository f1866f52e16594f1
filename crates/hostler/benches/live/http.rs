//! A client that is as light as it can be, so that it does not measure itself: one connection that
//! stays open, one request at a time.

use hostler_live::api::PREFIX;
use serde::de::DeserializeOwned;
use tokio::io::{AsyncBufReadExt as _, AsyncReadExt as _, AsyncWriteExt as _, BufReader};
use tokio::net::TcpStream;

/// A connection to the daemon.
pub struct Http {
    stream: BufReader<TcpStream>,
    token: String,
}

impl Http {
    pub async fn connect(address: &str, token: &str) -> Http {
        let stream = TcpStream::connect(address).await.expect("the daemon listens");
        stream.set_nodelay(true).expect("a socket takes its options");
        Http { stream: BufReader::new(stream), token: token.to_owned() }
    }

    /// Sends a request and gives the body of the answer, which must be a good one.
    pub async fn text(&mut self, method: &str, path: &str, body: &str) -> String {
        let request = format!(
            "{method} {path} HTTP/1.1\r\nhost: localhost\r\nauthorization: Bearer {}\r\n\
             content-type: application/json\r\ncontent-length: {}\r\n\r\n{body}",
            self.token,
            body.len(),
        );
        self.stream.write_all(request.as_bytes()).await.expect("the daemon reads");
        let (mut status, mut length) = (String::new(), 0);
        self.stream.read_line(&mut status).await.expect("the daemon answers");
        loop {
            let mut line = String::new();
            self.stream.read_line(&mut line).await.expect("the daemon answers");
            let line = line.trim_end().to_ascii_lowercase();
            if let Some(number) = line.strip_prefix("content-length:") {
                length = number.trim().parse().expect("a length is a number");
            }
            if line.is_empty() {
                break;
            }
        }
        let mut answer = vec![0; length];
        self.stream.read_exact(&mut answer).await.expect("the daemon answers in full");
        let answer = String::from_utf8(answer).expect("answers are text");
        assert!(status.contains(" 20"), "{method} {path}: {status}{answer}");
        answer
    }

    pub async fn post<T: DeserializeOwned>(&mut self, path: &str, body: &str) -> T {
        let text = self.text("POST", &format!("{PREFIX}{path}"), body).await;
        serde_json::from_str(&text).expect("the answer is what was asked for")
    }

    /// A figure of `/metrics`, or the sum over its labels.
    pub async fn figure(&mut self, name: &str) -> f64 {
        let text = self.text("GET", "/metrics", "").await;
        let values = text.lines().filter_map(|line| {
            let (key, value) = line.split_once(' ')?;
            let key = key.split('{').next()?;
            (key == format!("hostler_{name}")).then(|| value.parse::<f64>().ok()).flatten()
        });
        values.sum()
    }
}
