//! A receiver of remote write that answers as a test wants.

use backend::remote_write::WriteRequest;
use parking_lot::{Mutex, MutexGuard};
use std::collections::BTreeMap;
use std::io::{self, BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::Arc;
use std::time::Duration;

/// Treatment of a request.
#[derive(Clone, Copy, Debug)]
pub enum ReceiverAnswer {
    /// Accepts the request and answers 204.
    Take,
    /// Accepts the request, and closes the connection before the answer.
    TakeAndClose,
    /// Accepts the request, answers as if the connection stayed open, and then closes it.
    TakeAndLeave,
    /// Rejects the request. Answers with this status, these header lines and this body.
    Status(u16, &'static str, &'static str),
    /// Never answers.
    Hang,
    /// Closes the connection without accepting the request.
    Close,
}

/// Received requests, in order of arrival.
#[derive(Debug, Default)]
pub struct Came {
    /// The body of each request, and whether it was accepted.
    pub requests: Vec<(Vec<u8>, bool)>,
    /// The head of the first request.
    pub head: String,
}

/// A receiver on a free port. Its threads end with the test program.
pub struct Receiver {
    /// The address at which the receiver listens.
    pub addr: SocketAddr,
    came: Arc<Mutex<Came>>,
}

/// Values by series (its labels as text) and time (ms since the epoch). Each list has all values received for this
/// time.
pub type Samples = BTreeMap<String, BTreeMap<i64, Vec<f64>>>;

impl Receiver {
    /// Starts a receiver; `answer` gets the number of the request, from 0.
    pub fn start(answer: impl Fn(usize) -> ReceiverAnswer + Send + Sync + 'static) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a free port");
        let addr = listener.local_addr().expect("an address");
        let came = Arc::new(Mutex::new(Came::default()));
        let (theirs, answer) = (came.clone(), Arc::new(answer));
        std::thread::spawn(move || {
            for client in listener.incoming().flatten() {
                let (came, answer) = (theirs.clone(), answer.clone());
                // The sender notices a broken connection.
                std::thread::spawn(move || serve(client, &came, &*answer));
            }
        });
        Receiver { addr, came }
    }

    /// The address for remote write.
    pub fn url(&self) -> String {
        format!("http://{}/api/v1/write", self.addr)
    }

    /// Whether no connection is open: each request of a sender that has ended is read.
    pub fn rests(&self) -> bool {
        // This value and the thread that listens hold it, and the thread of each connection.
        Arc::strong_count(&self.came) == 2
    }

    /// The requests so far.
    pub fn came(&self) -> MutexGuard<'_, Came> {
        self.came.lock()
    }

    /// All samples in accepted requests.
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

fn serve(mut client: TcpStream, came: &Mutex<Came>, answer: &dyn Fn(usize) -> ReceiverAnswer) -> io::Result<()> {
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
            let mut came = came.lock();
            let answer = answer(came.requests.len());
            if came.requests.is_empty() {
                came.head = head;
            }
            came.requests.push((
                body,
                matches!(answer, ReceiverAnswer::Take | ReceiverAnswer::TakeAndClose | ReceiverAnswer::TakeAndLeave),
            ));
            answer
        };
        match answer {
            ReceiverAnswer::Take => client.write_all(b"HTTP/1.1 204 No Content\r\n\r\n")?,
            ReceiverAnswer::TakeAndLeave => return client.write_all(b"HTTP/1.1 204 No Content\r\n\r\n"),
            ReceiverAnswer::Status(code, headers, body) => {
                let length = body.len();
                write!(client, "HTTP/1.1 {code} No\r\ncontent-length: {length}\r\n{headers}\r\n{body}")?;
            }
            ReceiverAnswer::Hang => std::thread::sleep(Duration::from_secs(3600)),
            ReceiverAnswer::Close | ReceiverAnswer::TakeAndClose => return Ok(()),
        }
    }
}
