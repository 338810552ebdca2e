//! A TCP relay that disturbs connections on command: it can drop, delay, throttle or cut, or cut after a number of
//! bytes. Each direction has its own setting.

use parking_lot::{Mutex, MutexGuard};
use std::io::{Read, Write};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::sync::Arc;
use std::time::Duration;

/// Bytes that are moved at once.
const PART_BYTES: usize = 4 << 10;

/// A direction through the relay.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Direction {
    /// From the client to the server.
    Up,
    /// From the server to the client.
    Down,
}

/// Treatment of the bytes of a direction.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Way {
    /// Bytes are dropped silently: the connection is half open.
    pub drop: bool,
    /// Delay of the bytes.
    pub delay: Duration,
    /// Maximum rate in bytes per second; None for no limit.
    pub rate: Option<u32>,
    /// All connections are cut once this many bytes have passed.
    pub cut_after: Option<u64>,
}

#[derive(Default)]
struct Ways {
    up: Way,
    down: Way,
    /// New connections are closed at once.
    closed: bool,
    upstream: Option<SocketAddr>,
    links: Vec<TcpStream>,
    accepted: u64,
    /// Bytes that were dropped.
    dropped: u64,
}

impl Ways {
    fn way_of(&mut self, direction: Direction) -> &mut Way {
        match direction {
            Direction::Up => &mut self.up,
            Direction::Down => &mut self.down,
        }
    }

    fn cut(&mut self) {
        for link in self.links.drain(..) {
            // The connection may have ended by itself.
            let _ = link.shutdown(Shutdown::Both);
        }
    }
}

/// A relay on a free port. Its threads end with the test program.
pub struct Cutter {
    /// Address on which it listens.
    pub addr: SocketAddr,
    ways: Arc<Mutex<Ways>>,
}

impl Cutter {
    /// Starts a relay to this address that lets everything pass.
    pub fn start(upstream: SocketAddr) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a free port");
        let addr = listener.local_addr().expect("an address");
        let ways = Arc::new(Mutex::new(Ways { upstream: Some(upstream), ..Ways::default() }));
        let shared = ways.clone();
        std::thread::spawn(move || {
            for client in listener.incoming().map_while(Result::ok) {
                accept(client, &shared);
            }
        });
        Cutter { addr, ways }
    }

    fn ways(&self) -> MutexGuard<'_, Ways> {
        self.ways.lock()
    }

    /// Sets the treatment of a direction from now on, on existing connections too.
    pub fn set(&self, direction: Direction, way: Way) {
        *self.ways().way_of(direction) = way;
    }

    /// Lets everything pass.
    pub fn pass(&self) {
        let mut ways = self.ways();
        (ways.up, ways.down, ways.closed) = (Way::default(), Way::default(), false);
    }

    /// Cuts the existing connections. New ones can be made.
    pub fn cut(&self) {
        self.ways().cut();
    }

    /// Cuts the existing connections, and accepts none until everything [passes](Self::pass).
    pub fn close(&self) {
        let mut ways = self.ways();
        ways.closed = true;
        ways.cut();
    }

    /// Number of accepted connections so far, without rejected ones.
    pub fn accepted(&self) -> u64 {
        self.ways().accepted
    }
}

fn accept(client: TcpStream, ways: &Arc<Mutex<Ways>>) {
    let upstream = {
        let ways = ways.lock();
        ways.upstream.filter(|_| !ways.closed)
    };
    // A rejected client sees the end of the connection.
    let Some(server) = upstream.and_then(|upstream| TcpStream::connect(upstream).ok()) else { return };
    let clones = || -> std::io::Result<[TcpStream; 4]> {
        Ok([client.try_clone()?, server.try_clone()?, client.try_clone()?, server.try_clone()?])
    };
    let Ok([up_from, up_to, down_to, down_from]) = clones() else { return };
    {
        let mut ways = ways.lock();
        ways.accepted += 1;
        ways.links.extend([client, server]);
    }
    let (first, second) = (ways.clone(), ways.clone());
    std::thread::spawn(move || relay(up_from, up_to, Direction::Up, &first));
    std::thread::spawn(move || relay(down_from, down_to, Direction::Down, &second));
}

/// Moves bytes until one end closes. Then the other is closed too.
fn relay(mut from: TcpStream, mut to: TcpStream, direction: Direction, ways: &Mutex<Ways>) {
    let mut part = [0; PART_BYTES];
    while let Ok(n @ 1..) = from.read(&mut part) {
        let mut passed = n;
        let way = {
            let mut ways = ways.lock();
            let way = ways.way_of(direction);
            if let Some(left) = &mut way.cut_after {
                passed = usize::try_from(*left).unwrap_or(usize::MAX).min(n);
                *left -= passed as u64;
            }
            let way = *way;
            ways.dropped += if way.drop { n as u64 } else { 0 };
            way
        };
        if way.drop {
            continue;
        }
        let slow = way.rate.map_or(Duration::ZERO, |rate| Duration::from_secs_f64(passed as f64 / f64::from(rate)));
        std::thread::sleep(way.delay + slow);
        if to.write_all(&part[..passed]).is_err() {
            break;
        }
        if way.cut_after.is_some_and(|_| passed < n) {
            let mut ways = ways.lock();
            ways.way_of(direction).cut_after = None;
            ways.cut();
        }
    }
    let _ = from.shutdown(Shutdown::Both);
    let _ = to.shutdown(Shutdown::Both);
}

#[cfg(test)]
mod tests {
    use super::*;

    /// An echo server, with a relay before it.
    fn echo() -> Cutter {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a free port");
        let addr = listener.local_addr().expect("an address");
        std::thread::spawn(move || {
            for stream in listener.incoming().map_while(Result::ok) {
                let mut to = stream.try_clone().expect("a handle");
                std::thread::spawn(move || std::io::copy(&mut { stream }, &mut to));
            }
        });
        Cutter::start(addr)
    }

    fn connect(cutter: &Cutter) -> TcpStream {
        let stream = TcpStream::connect(cutter.addr).expect("it listens");
        stream.set_read_timeout(Some(crate::waiting::MAX_WAIT)).expect("a limit");
        stream
    }

    fn said_back(stream: &mut TcpStream, bytes: &[u8]) -> Vec<u8> {
        stream.write_all(bytes).expect("it takes bytes");
        let mut back = vec![0; bytes.len()];
        let mut read = 0;
        while read < back.len() {
            match stream.read(&mut back[read..]) {
                Ok(n @ 1..) => read += n,
                _ => break,
            }
        }
        back.truncate(read);
        back
    }

    #[test]
    fn bytes_pass_until_they_are_cut_and_links_can_be_made_again() {
        let cutter = echo();
        let mut stream = connect(&cutter);
        assert_eq!(said_back(&mut stream, b"one"), b"one");
        cutter.cut();
        assert_eq!(said_back(&mut connect(&cutter), b"two"), b"two");
        cutter.close();
        assert_eq!(connect(&cutter).read(&mut [0]).unwrap_or(0), 0);
        cutter.pass();
        assert_eq!(said_back(&mut connect(&cutter), b"three"), b"three");
        assert_eq!(cutter.accepted(), 3);
    }

    #[test]
    fn a_link_is_cut_after_so_many_bytes_of_one_direction() {
        let cutter = echo();
        cutter.set(Direction::Down, Way { cut_after: Some(5), ..Way::default() });
        let mut stream = connect(&cutter);
        assert_eq!(said_back(&mut stream, b"123"), b"123");
        assert_eq!(said_back(&mut stream, b"4567"), b"45");
        assert_eq!(said_back(&mut connect(&cutter), b"again"), b"again");
    }

    #[test]
    fn what_is_dropped_is_not_said_back_and_the_link_stays() {
        let cutter = echo();
        let mut stream = connect(&cutter);
        cutter.set(Direction::Up, Way { drop: true, ..Way::default() });
        stream.write_all(b"lost").expect("it takes bytes");
        // They are dropped when the relay has read them, not before.
        crate::waiting::until_so("the relay drops them", || cutter.ways().dropped == 4);
        stream.set_read_timeout(Some(Duration::from_millis(200))).expect("a limit");
        assert!(stream.read(&mut [0]).is_err_and(|error| error.kind() == std::io::ErrorKind::WouldBlock));
        stream.set_read_timeout(Some(crate::waiting::MAX_WAIT)).expect("a limit");
        cutter.set(Direction::Up, Way { rate: Some(10_000), delay: Duration::from_millis(1), ..Way::default() });
        assert_eq!(said_back(&mut stream, b"kept"), b"kept");
    }
}
