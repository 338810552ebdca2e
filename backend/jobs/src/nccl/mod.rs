//! Asks NCCL which ranks of a hanging job the others wait for. Since 2.24 each process of NCCL listens on loopback for
//! such requests (RAS): it answers for the whole job, from all nodes. A request costs the job little, and is sent only
//! while a hang is suspected. RCCL of AMD has the same port, protocol, texts and variables since 2.24, so nothing differs for
//! it.
//!
//! Anybody on this machine may listen on that port. So the answer is bounded in size and time, and only numbers and
//! addresses of it are used.

mod answer;

use shared::nccl::NcclReport;
use std::io::{self, Read, Write};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, TcpStream};
use std::time::{Duration, Instant};

/// Port of NCCL, without `NCCL_RAS_ADDR`.
pub const PORT: u16 = 28_028;

/// Maximum time of all requests to a port.
const TIMEOUT: Duration = Duration::from_secs(5);

/// Time for which NCCL waits for its other processes, seconds. Ranks that do not answer are reported after it.
const PEERS_TIMEOUT_S: u32 = 2;

/// Maximum size of an answer, bytes: 1,024 ranks need 600 KiB as JSON for each communicator that all of them share.
const MAX_ANSWER_BYTES: usize = 4 << 20;

/// Maximum length of a line before the answer, bytes.
const MAX_LINE_BYTES: usize = 1 << 10;

/// The addresses of loopback: NCCL listens only on the first one of `localhost`, which is `::1` on many machines.
const LOOPBACK: [IpAddr; 2] = [IpAddr::V4(Ipv4Addr::LOCALHOST), IpAddr::V6(Ipv6Addr::LOCALHOST)];

/// A connection with a deadline for all of it.
struct Deadline {
    stream: TcpStream,
    until: Instant,
}

impl Deadline {
    /// Connects to the first of two addresses that accepts.
    fn connect([first, second]: [IpAddr; 2], port: u16, until: Instant) -> io::Result<Deadline> {
        let to = |address: IpAddr| {
            let left = until.saturating_duration_since(Instant::now()).max(Duration::from_millis(1));
            TcpStream::connect_timeout(&(address, port).into(), left)
        };
        let stream = to(first).or_else(|_| to(second))?;
        stream.set_write_timeout(Some(TIMEOUT))?;
        Ok(Deadline { stream, until })
    }

    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        let left = self.until.saturating_duration_since(Instant::now());
        if left.is_zero() {
            return Err(io::ErrorKind::TimedOut.into());
        }
        self.stream.set_read_timeout(Some(left))?;
        self.stream.read(into)
    }

    /// Sends a command and reads the line that answers it.
    fn command(&mut self, command: &str) -> io::Result<String> {
        self.stream.write_all(format!("{command}\n").as_bytes())?;
        let mut line = Vec::new();
        let mut byte = [0];
        while line.len() < MAX_LINE_BYTES && self.read(&mut byte)? == 1 {
            if byte[0] == b'\n' {
                return Ok(String::from_utf8_lossy(&line).trim().to_string());
            }
            line.push(byte[0]);
        }
        Err(io::Error::other("no line"))
    }

    /// Sends the last command, and reads the answer to its end.
    fn rest(mut self, command: &str) -> io::Result<Vec<u8>> {
        self.stream.write_all(format!("{command}\n").as_bytes())?;
        let (mut answer, mut part) = (Vec::new(), vec![0; 64 << 10]);
        loop {
            match self.read(&mut part)? {
                0 => return Ok(answer),
                read if answer.len() + read > MAX_ANSWER_BYTES => return Err(io::ErrorKind::FileTooLarge.into()),
                read => answer.extend_from_slice(&part[..read]),
            }
        }
    }
}

/// The report of the job that listens on a port of loopback: the ranks that the others wait for. None if nothing listens
/// there, if it is no NCCL, if it does not answer within 5 s, or if no rank is missing or behind. It blocks.
pub fn ask(port: u16) -> Option<NcclReport> {
    let until = Instant::now() + TIMEOUT;
    let told = match asked(port, Form::Json, until) {
        // JSON lists each rank of each communicator, the text only those that differ.
        Err(error) if error.kind() == io::ErrorKind::FileTooLarge => asked(port, Form::Text, until),
        told => told,
    };
    let told = told.inspect_err(|error| tracing::debug!(%error, port, "NCCL gives no answer")).ok()?;
    answer::read(&told)
}

/// Form of an answer.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Form {
    Json,
    Text,
}

fn asked(port: u16, form: Form, until: Instant) -> io::Result<Vec<u8>> {
    let mut connection = Deadline::connect(LOOPBACK, port, until)?;
    if !connection.command("CLIENT PROTOCOL 2")?.starts_with("SERVER PROTOCOL ") {
        return Err(io::Error::other("this is no NCCL"));
    }
    if connection.command(&format!("TIMEOUT {PEERS_TIMEOUT_S}"))? != "OK" {
        return Err(io::Error::other("the timeout is refused"));
    }
    // NCCL before 2.28.7 knows no format but text, and says so.
    if form == Form::Json {
        connection.command("SET FORMAT json")?;
    }
    connection.rest("VERBOSE STATUS")
}

/// The port in a value of `NCCL_RAS_ADDR`, as `localhost:28028`.
pub fn port_in(address: &str) -> Option<u16> {
    address.rsplit_once(':')?.1.parse().ok().filter(|port| *port > 0)
}

#[cfg(test)]
mod tests;
