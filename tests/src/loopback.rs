//! A server on this machine that answers as badly as it is told to. Plain sockets: an HTTP library would not cut a
//! body in the middle.

use std::io::{self, BufRead, BufReader, Read, Write};
use std::net::{Ipv4Addr, Shutdown, SocketAddr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::Duration;

/// How a request is answered.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Reply {
    /// The status.
    pub status: u16,
    /// Further headers. The length is added where it is announced.
    pub headers: Vec<(&'static str, String)>,
    /// What is sent behind the head.
    pub body: Body,
}

/// The body of a reply.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Body {
    /// All of it, its length announced.
    Whole(Vec<u8>),
    /// All of it, ended by the end of the connection.
    Unannounced(Vec<u8>),
    /// Its whole length is announced, half of it is sent.
    Cut(Vec<u8>),
    /// Piece by piece with a pause in front of each.
    Slow {
        /// The body.
        body: Vec<u8>,
        /// How long each pause is.
        pause: Duration,
    },
    /// The same piece again and again.
    Flood {
        /// The piece.
        piece: Vec<u8>,
        /// How many bytes in all.
        bytes: u64,
        /// Whether the length is announced.
        announced: bool,
    },
    /// No answer at all, while the connection stays.
    Silence,
    /// The connection is closed instead of an answer.
    Hangup,
}

/// A request as it came.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub struct Received {
    /// The first line, without its end.
    pub line: String,
    /// The headers, names in lower case.
    pub headers: Vec<(String, String)>,
    /// The body.
    pub body: Vec<u8>,
}

impl Received {
    /// The value of a header.
    #[must_use]
    pub fn header(&self, name: &str) -> Option<&str> {
        self.headers.iter().find(|(known, _)| known == name).map(|(_, value)| value.as_str())
    }
}

/// A running server. It stops when it is dropped.
#[derive(Debug)]
pub struct Loopback {
    address: SocketAddr,
    received: Arc<Mutex<Vec<Received>>>,
    stopped: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl Loopback {
    /// A server that answers every request so.
    ///
    /// # Errors
    /// When no port can be had.
    pub fn start(reply: Reply) -> io::Result<Self> {
        Self::answering(move |_| reply.clone())
    }

    /// A server that answers each request as it deserves.
    ///
    /// # Errors
    /// When no port can be had.
    pub fn answering(reply: impl Fn(&Received) -> Reply + Send + 'static) -> io::Result<Self> {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?;
        let address = listener.local_addr()?;
        let (received, stopped) = (Arc::default(), Arc::new(AtomicBool::new(false)));
        let (log, stop) = (Arc::clone(&received), Arc::clone(&stopped));
        let thread = thread::spawn(move || {
            for stream in listener.incoming() {
                if stop.load(Ordering::SeqCst) {
                    break;
                }
                let Ok(stream) = stream else { continue };
                // One that goes away in the middle is what this is about.
                let _ = serve(stream, &reply, &log, &stop);
            }
        });
        Ok(Self { address, received, stopped, thread: Some(thread) })
    }

    /// Where it listens, as the beginning of URLs.
    #[must_use]
    pub fn base_url(&self) -> String {
        format!("http://{}", self.address)
    }

    /// What came so far.
    #[must_use]
    pub fn received(&self) -> Vec<Received> {
        self.received.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

impl Drop for Loopback {
    fn drop(&mut self) {
        self.stopped.store(true, Ordering::SeqCst);
        // Wakes it, so that it sees that it is to stop.
        drop(TcpStream::connect(self.address));
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

/// An address on this machine where nobody listens.
///
/// # Errors
/// When no port can be had.
pub fn nobody() -> io::Result<String> {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?;
    Ok(format!("http://{}", listener.local_addr()?))
}

fn serve(
    stream: TcpStream,
    reply: &dyn Fn(&Received) -> Reply,
    log: &Mutex<Vec<Received>>,
    stop: &AtomicBool,
) -> io::Result<()> {
    stream.set_read_timeout(Some(Duration::from_secs(5)))?;
    stream.set_write_timeout(Some(Duration::from_secs(5)))?;
    let mut reader = BufReader::new(stream.try_clone()?);
    let received = receive(&mut reader)?;
    let reply = reply(&received);
    log.lock().unwrap_or_else(PoisonError::into_inner).push(received);
    let mut out = stream.try_clone()?;
    let announced = match &reply.body {
        Body::Whole(body) | Body::Cut(body) | Body::Slow { body, .. } => Some(body.len() as u64),
        Body::Flood { bytes, announced: true, .. } => Some(*bytes),
        Body::Unannounced(_) | Body::Flood { announced: false, .. } => None,
        Body::Silence => {
            while !stop.load(Ordering::SeqCst) {
                thread::sleep(Duration::from_millis(5));
            }
            return Ok(());
        }
        Body::Hangup => return stream.shutdown(Shutdown::Both),
    };
    let mut head = format!("HTTP/1.1 {} Said\r\nconnection: close\r\n", reply.status);
    for (name, value) in &reply.headers {
        head.push_str(&format!("{name}: {value}\r\n"));
    }
    if let Some(length) = announced {
        head.push_str(&format!("content-length: {length}\r\n"));
    }
    head.push_str("\r\n");
    out.write_all(head.as_bytes())?;
    match &reply.body {
        Body::Whole(body) | Body::Unannounced(body) => out.write_all(body)?,
        Body::Cut(body) => out.write_all(body.get(..body.len() / 2).unwrap_or_default())?,
        Body::Slow { body, pause } => {
            for piece in body.chunks(8) {
                thread::sleep(*pause);
                if stop.load(Ordering::SeqCst) {
                    break;
                }
                out.write_all(piece)?;
            }
        }
        Body::Flood { piece, bytes, .. } => {
            let mut left = *bytes;
            while left > 0 {
                let length = usize::try_from(left).unwrap_or(usize::MAX).min(piece.len());
                out.write_all(piece.get(..length).unwrap_or_default())?;
                left -= length as u64;
            }
        }
        Body::Silence | Body::Hangup => {}
    }
    out.flush()?;
    stream.shutdown(Shutdown::Write)
}

fn receive(reader: &mut impl BufRead) -> io::Result<Received> {
    let mut received = Received::default();
    reader.read_line(&mut received.line)?;
    received.line.truncate(received.line.trim_end().len());
    loop {
        let mut line = String::new();
        reader.read_line(&mut line)?;
        let Some((name, value)) = line.trim_end().split_once(':') else { break };
        received.headers.push((name.to_ascii_lowercase(), value.trim().to_owned()));
    }
    let length = received.header("content-length").and_then(|length| length.parse().ok()).unwrap_or(0);
    reader.take(length).read_to_end(&mut received.body)?;
    Ok(received)
}
