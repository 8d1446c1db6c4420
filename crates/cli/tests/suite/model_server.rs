//! A server on this machine that answers as a model's would.

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::thread::{self, JoinHandle};

use serde_json::{Value, json};

/// A request as it came.
#[derive(Clone, Debug)]
pub(crate) struct Asked {
    /// The first line.
    pub(crate) line: String,
    /// The headers as they came, names in lower case.
    pub(crate) headers: Vec<(String, String)>,
    /// The body.
    pub(crate) body: String,
}

impl Asked {
    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        self.headers.iter().find(|(known, _)| known == name).map(|(_, value)| value.as_str())
    }
}

/// A status and a body.
pub(crate) type Reply = (u16, String);

/// A running server. It stops when it is dropped.
pub(crate) struct ModelServer {
    address: SocketAddr,
    asked: Arc<Mutex<Vec<Asked>>>,
    stopped: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl ModelServer {
    pub(crate) fn start(answer: impl Fn(&Asked) -> Reply + Send + 'static) -> Self {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
        let address = listener.local_addr().unwrap();
        let (asked, stopped) = (Arc::new(Mutex::new(Vec::new())), Arc::new(AtomicBool::new(false)));
        let (log, stop) = (Arc::clone(&asked), Arc::clone(&stopped));
        let thread = thread::spawn(move || {
            for stream in listener.incoming() {
                if stop.load(Ordering::SeqCst) {
                    break;
                }
                serve(stream.unwrap(), &answer, &log);
            }
        });
        Self { address, asked, stopped, thread: Some(thread) }
    }

    /// One that serves the model `tiny` with this window, and answers every chat so.
    pub(crate) fn chat(window: u64, reply: impl Fn(&Asked) -> Reply + Send + 'static) -> Self {
        Self::start(move |asked| match asked.line.as_str() {
            "GET /v1/models HTTP/1.1" => (
                200,
                json!({"object": "list", "data": [{"id": "tiny", "meta": {"n_ctx": window}}]}).to_string(),
            ),
            "POST /v1/chat/completions HTTP/1.1" => reply(asked),
            _ => (404, "{}".to_owned()),
        })
    }

    /// The base of its OpenAI-compatible interface.
    pub(crate) fn url(&self) -> String {
        format!("http://{}/v1", self.address)
    }

    /// What came so far.
    pub(crate) fn asked(&self) -> Vec<Asked> {
        self.asked.lock().unwrap().clone()
    }

    /// The bodies of the chats that came so far.
    pub(crate) fn chats(&self) -> Vec<Value> {
        let chats = self.asked().into_iter().filter(|asked| asked.line.starts_with("POST "));
        chats.map(|asked| serde_json::from_str(&asked.body).unwrap()).collect()
    }
}

impl Drop for ModelServer {
    fn drop(&mut self) {
        self.stopped.store(true, Ordering::SeqCst);
        // Wakes it, so that it sees that it is to stop.
        drop(TcpStream::connect(self.address));
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

/// The base of a server that is not there.
pub(crate) fn nobody() -> String {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
    format!("http://{}/v1", listener.local_addr().unwrap())
}

/// A chat's answer with this text.
pub(crate) fn said(model: &str, text: &str) -> Reply {
    let message = json!({"role": "assistant", "content": text});
    answer(model, &json!({"index": 0, "message": message, "finish_reason": "stop"}))
}

/// A chat's answer that is a refusal.
pub(crate) fn refusal(model: &str) -> Reply {
    let message = json!({"role": "assistant", "content": null, "refusal": "I will not."});
    answer(model, &json!({"index": 0, "message": message, "finish_reason": "stop"}))
}

fn answer(model: &str, choice: &Value) -> Reply {
    let usage = json!({"prompt_tokens": 700, "completion_tokens": 60, "total_tokens": 760});
    (
        200,
        json!({"object": "chat.completion", "model": model, "choices": [choice], "usage": usage}).to_string(),
    )
}

fn serve(stream: TcpStream, answer: &dyn Fn(&Asked) -> Reply, log: &Mutex<Vec<Asked>>) {
    let mut reader = BufReader::new(stream.try_clone().unwrap());
    let mut asked = Asked { line: String::new(), headers: Vec::new(), body: String::new() };
    // A client that goes away is its own business.
    if reader.read_line(&mut asked.line).is_err() || asked.line.is_empty() {
        return;
    }
    asked.line.truncate(asked.line.trim_end().len());
    loop {
        let mut line = String::new();
        let _ = reader.read_line(&mut line);
        let Some((name, value)) = line.trim_end().split_once(':') else { break };
        asked.headers.push((name.to_ascii_lowercase(), value.trim().to_owned()));
    }
    let length = asked.header("content-length").and_then(|length| length.parse().ok()).unwrap_or(0);
    let _ = reader.take(length).read_to_string(&mut asked.body);
    let (status, body) = answer(&asked);
    log.lock().unwrap().push(asked);
    let length = body.len();
    let head = format!(
        "HTTP/1.1 {status} Said\r\nconnection: close\r\ncontent-type: application/json\r\ncontent-length: {length}\r\n\r\n"
    );
    let mut stream = stream;
    let _ = stream.write_all(head.as_bytes()).and_then(|()| stream.write_all(body.as_bytes()));
}
