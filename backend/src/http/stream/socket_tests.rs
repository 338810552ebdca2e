//! Viewers over pipes, with the time stopped: delivery, timeouts, and the end of a connection.

use super::super::viewer::page;
use super::*;
use tokio::io::{DuplexStream, duplex};
use tokio::sync::watch;

/// Both ends of a connection; the other one is the library's.
async fn pair(buffer: usize) -> (Socket<DuplexStream>, WebSocketStream<DuplexStream>) {
    let (ours, theirs) = duplex(buffer);
    let theirs = WebSocketStream::from_raw_socket(theirs, Role::Client, None).await;
    (Socket::new(ours, &[]).await, theirs)
}

#[tokio::test]
async fn messages_of_all_lengths_arrive_as_they_are() {
    let (mut socket, mut theirs) = pair(1_000).await;
    for length in [0, 1, 125, 126, 65_535, 65_536, 300_000] {
        let message = Bytes::from((0..length).map(|i| b'a' + (i % 20) as u8).collect::<Vec<u8>>());
        for kind in [Opcode::Binary, Opcode::Text] {
            let (sent, came) = tokio::join!(socket.send(kind, &message), theirs.next());
            sent.unwrap();
            match came.unwrap().unwrap() {
                Message::Binary(bytes) => assert_eq!(bytes, message),
                Message::Text(text) => assert_eq!(text.as_bytes(), message),
                other => panic!("{other:?}"),
            }
        }
    }
}

#[tokio::test(start_paused = true)]
async fn who_answers_pings_stays_and_who_does_not_is_gone_in_fifteen_seconds() {
    let (_sender, news) = watch::channel(0);
    let mut news = Wakes::from(news);
    let (mut socket, mut theirs) = pair(1_000).await;
    // The library answers pings while it reads.
    let reading = tokio::spawn(async move { while theirs.next().await.is_some_and(|m| m.is_ok()) {} });
    let wake = Instant::now() + Duration::from_secs(3_600);
    assert!(matches!(socket.next(&mut news, Some(wake)).await, Ok(SocketEvent::Time)));
    reading.abort();

    let (mut socket, _theirs) = pair(1_000).await;
    let begun = Instant::now();
    assert!(matches!(socket.next(&mut news, None).await, Err(End::Told(CloseCode::Away, _))));
    assert_eq!(begun.elapsed().as_secs(), DEAD_AFTER.as_secs());
}

#[tokio::test(start_paused = true)]
async fn who_takes_nothing_is_given_up_and_who_takes_little_is_sent_all() {
    let (mut socket, _theirs) = pair(100).await;
    let begun = Instant::now();
    assert_eq!(socket.send(Opcode::Binary, &Bytes::from(vec![0; 1_000])).await, Err(End::Gone));
    assert_eq!(begun.elapsed().as_secs(), DEAD_AFTER.as_secs());

    let (ours, mut theirs) = duplex(100);
    let mut socket = Socket::new(ours, &[]).await;
    let slow = tokio::spawn(async move {
        let mut some = [0; 100];
        while theirs.read(&mut some).await.is_ok_and(|n| n > 0) {
            tokio::time::sleep(Duration::from_secs(10)).await;
        }
    });
    socket.send(Opcode::Binary, &Bytes::from(vec![0; 1_000])).await.unwrap();
    let begun = Instant::now();
    assert_eq!(
        socket.send(Opcode::Binary, &Bytes::from(vec![0; 10_000])).await,
        Err(End::Gone),
        "this would take 1,000 s"
    );
    assert_eq!(begun.elapsed().as_secs(), MESSAGE_TIMEOUT.as_secs());
    slow.abort();
}

#[tokio::test(start_paused = true)]
async fn who_took_long_to_take_a_message_is_asked_before_it_counts_as_gone() {
    let (_sender, news) = watch::channel(0);
    let mut news = Wakes::from(news);
    let (mut socket, mut theirs) = pair(100).await;
    let reading = tokio::spawn(async move {
        tokio::time::sleep(DEAD_AFTER - Duration::from_secs(1)).await;
        while theirs.next().await.is_some_and(|m| m.is_ok()) {}
    });
    socket.send(Opcode::Text, &Bytes::from(vec![b' '; 1_000])).await.unwrap();
    tokio::time::sleep(DEAD_AFTER).await;
    let wake = Instant::now() + Duration::from_secs(60);
    assert!(matches!(socket.next(&mut news, Some(wake)).await, Ok(SocketEvent::Time)));
    reading.abort();
}

#[tokio::test(start_paused = true)]
async fn each_fault_has_its_close_code() {
    let faults: [(&[u8], CloseCode); 8] = [
        // Not masked.
        (&[0x82, 0x01, 0x00], CloseCode::Protocol),
        // A reserved bit, a reserved opcode, a ping in parts, a part of nothing.
        (&[0xc2, 0x81, 0, 0, 0, 0, 1], CloseCode::Protocol),
        (&[0x83, 0x81, 0, 0, 0, 0, 1], CloseCode::Protocol),
        (&[0x09, 0x81, 0, 0, 0, 0, 1], CloseCode::Protocol),
        (&[0x80, 0x81, 0, 0, 0, 0, 1], CloseCode::Protocol),
        // Text that is not UTF-8.
        (&[0x81, 0x81, 0, 0, 0, 0, 0xff], CloseCode::Invalid),
        // 65,537 bytes announced, and one of 2^63.
        (&[0x82, 0xff, 0, 0, 0, 0, 0, 1, 0, 1, 0, 0, 0, 0], CloseCode::Size),
        (&[0x82, 0xff, 0x7f, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0], CloseCode::Size),
    ];
    for (bytes, code) in faults {
        let (ours, mut theirs) = duplex(1_000);
        let mut socket = Socket::new(ours, &[]).await;
        theirs.write_all(bytes).await.unwrap();
        let (_sender, news) = watch::channel(0);
        let mut news = Wakes::from(news);
        let Err(End::Told(told, reason)) = socket.next(&mut news, None).await else { panic!("{bytes:?}") };
        assert_eq!(told, code, "{bytes:?}: {reason}");
        let closing = tokio::spawn(async move { socket.close(told, &reason.repeat(5)).await });
        let mut frame = Vec::new();
        theirs.read_to_end(&mut frame).await.unwrap();
        assert_eq!((frame[0], &frame[2..4]), (0x88, &u16::from(code).to_be_bytes()[..]));
        assert!(frame.len() > 10 && frame.len() <= 127, "a sentence that a control frame holds: {}", frame.len());
        drop(theirs);
        closing.await.unwrap();
    }
}

/// Size of the future of an asynchronous function, bytes.
const fn size_of_future<A, B, C, F>(_: fn(A, B, C) -> F) -> usize {
    size_of::<F>()
}

#[test]
fn ten_thousand_pages_take_little_memory_each() {
    // A question to the database that a page waits for by itself doubles this, all the time.
    let page = size_of_future(page::<Socket<Transport>>) + size_of::<WebSocketStream<Transport>>();
    assert!(page <= 4_500, "{page} bytes");
}
