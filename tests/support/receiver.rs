//! A receiver of remote write that answers as a test wants.

use backend::remote::WriteRequest;
use std::collections::BTreeMap;
use std::io::{self, BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Duration;

/// What becomes of one request.
#[derive(Clone, Copy, Debug)]
pub enum Answer {
    /// Taken.
    Take,
    /// Taken, but the connection ends before the answer.
    TakeAndClose,
    /// Taken, and answered as if the connection were to stay; then it ends.
    TakeAndLeave,
    /// Not taken: this status, header lines and body.
    Status(u16, &'static str, &'static str),
    /// Never answered.
    Hang,
    /// The connection ends.
    Close,
}

/// What came, request by request.
#[derive(Debug, Default)]
pub struct Came {
    /// Bodies of all requests, and whether each was taken.
    pub requests: Vec<(Vec<u8>, bool)>,
    /// The head of the first.
    pub head: String,
}

/// A receiver on a free port; its threads end with the test program.
pub struct Receiver {
    /// Where it listens.
    pub addr: SocketAddr,
    came: Arc<Mutex<Came>>,
}

/// Samples by series, its labels as text, and time; each with all values that came for it.
pub type Samples = BTreeMap<String, BTreeMap<i64, Vec<f64>>>;

impl Receiver {
    /// Answers the n-th request, from 0, as told.
    pub fn start(answer: impl Fn(usize) -> Answer + Send + Sync + 'static) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a free port");
        let addr = listener.local_addr().expect("an address");
        let came = Arc::new(Mutex::new(Came::default()));
        let (theirs, answer) = (came.clone(), Arc::new(answer));
        std::thread::spawn(move || {
            for client in listener.incoming().flatten() {
                let (came, answer) = (theirs.clone(), answer.clone());
                // A connection that breaks is the sender's to notice.
                std::thread::spawn(move || serve(client, &came, &*answer));
            }
        });
        Receiver { addr, came }
    }

    /// The address to write to.
    pub fn url(&self) -> String {
        format!("http://{}/api/v1/write", self.addr)
    }

    /// What came so far.
    pub fn came(&self) -> MutexGuard<'_, Came> {
        self.came.lock().expect("no panic while it is held")
    }

    /// All samples that were taken.
    pub fn samples(&self) -> Samples {
        let mut all = Samples::new();
        for (body, _) in self.came().requests.iter().filter(|(_, taken)| *taken) {
            for series in WriteRequest::unpack(body).expect("a request").timeseries {
                assert!(series.labels.is_sorted_by_key(|label| &label.name), "{:?}", series.labels);
                assert!(series.samples.is_sorted_by_key(|sample| sample.timestamp));
                let labels: Vec<String> = series.labels.iter().map(|l| format!("{}={}", l.name, l.value)).collect();
                let own = all.entry(labels.join(",")).or_default();
                series.samples.iter().for_each(|s| own.entry(s.timestamp).or_default().push(s.value));
            }
        }
        all
    }
}

fn serve(mut client: TcpStream, came: &Mutex<Came>, answer: &dyn Fn(usize) -> Answer) -> io::Result<()> {
    let mut from = BufReader::new(client.try_clone()?);
    loop {
        let (mut head, mut length) = (String::new(), 0);
        loop {
            let begin = head.len();
            if from.read_line(&mut head)? == 0 {
                return Ok(());
            }
            let line = head[begin..].to_ascii_lowercase();
            if let Some(value) = line.strip_prefix("content-length:") {
                length = value.trim().parse().map_err(io::Error::other)?;
            }
            if line == "\r\n" {
                break;
            }
        }
        let mut body = vec![0; length];
        from.read_exact(&mut body)?;
        let answer = {
            let mut came = came.lock().expect("no panic while it is held");
            let answer = answer(came.requests.len());
            if came.requests.is_empty() {
                came.head = head;
            }
            came.requests.push((body, matches!(answer, Answer::Take | Answer::TakeAndClose | Answer::TakeAndLeave)));
            answer
        };
        match answer {
            Answer::Take => client.write_all(b"HTTP/1.1 204 No Content\r\n\r\n")?,
            Answer::TakeAndLeave => return client.write_all(b"HTTP/1.1 204 No Content\r\n\r\n"),
            Answer::Status(code, headers, body) => {
                let length = body.len();
                write!(client, "HTTP/1.1 {code} No\r\ncontent-length: {length}\r\n{headers}\r\n{body}")?;
            }
            Answer::Hang => std::thread::sleep(Duration::from_secs(3600)),
            Answer::Close | Answer::TakeAndClose => return Ok(()),
        }
    }
}
