//! Arrivals as a server sees them: at 20,000 a second the gaps between requests must still look exponential.
//!
//! The server here only logs when each request came, by a thread per connection; it shares nothing with the engine.

#![allow(clippy::disallowed_methods)] // A test starts processes and opens sockets.

mod common;

use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::process::Stdio;
use std::sync::mpsc::{Sender, channel};
use std::time::Instant;

use common::spawn;
use serde_json::json;

const RATE: f64 = 20_000.0;
const OK: &[u8] = b"\x07\0\0\x01\0\x01\0\x02\0\0\0";

/// A whole packet: its sequence number and its body.
fn packet(stream: &mut TcpStream) -> std::io::Result<(u8, Vec<u8>)> {
    let mut head = [0; 4];
    stream.read_exact(&mut head)?;
    let mut body = vec![0; u32::from_le_bytes([head[0], head[1], head[2], 0]) as usize];
    stream.read_exact(&mut body)?;
    Ok((head[3], body))
}

/// Speaks just enough of the protocol for updates as text, and tells when each came.
fn serve(mut stream: TcpStream, log: &Sender<Instant>) -> std::io::Result<()> {
    stream.set_nodelay(true)?;
    let mut greeting = b"\x0a8.0.0-logging\0\x01\0\0\x0012345678\0\x09\xa2\x2d\x02\0\x08\0\x15".to_vec();
    greeting.extend([0; 10]);
    greeting.extend(b"123456789012\0mysql_native_password\0");
    stream.write_all(&[greeting.len() as u8, 0, 0, 0])?;
    stream.write_all(&greeting)?;
    packet(&mut stream)?;
    stream.write_all(b"\x07\0\0\x02\0\0\0\x02\0\0\0")?;
    loop {
        let (_, body) = packet(&mut stream)?;
        let came = Instant::now();
        stream.write_all(OK)?;
        if body.starts_with(b"\x03UPDATE") {
            // The test has ended where nobody listens.
            let _ = log.send(came);
        }
    }
}

/// When each request of one second came.
fn arrivals() -> Vec<Instant> {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    let (sender, log) = channel();
    std::thread::spawn(move || {
        for stream in listener.incoming().take(16).flatten() {
            let sender = sender.clone();
            // An error is the end of the connection.
            std::thread::spawn(move || serve(stream, &sender));
        }
    });
    let plan = json!({
        "schema": 1,
        "target": {"protocol": "mysql", "endpoints": [{"tcp": {"host": "127.0.0.1", "port": port}}],
            "user": "u", "database": "d"},
        "workload": {"name": "oltp_update_index", "statements": "text"},
        "load": {"connections": 16, "shape": {"poisson": {"rate_per_s": RATE}}},
        "phases": {"measure_us": 1_000_000},
        "seed": 3,
    });
    let mut child = spawn("run", &format!("{plan}\n"), Stdio::null(), Stdio::inherit());
    assert!(child.wait().unwrap().success());
    let mut arrivals: Vec<_> = log.iter().collect();
    arrivals.sort_unstable();
    arrivals
}

/// Kolmogorov-Smirnov distance of the gaps from the exponential with the planned mean.
fn distance(arrivals: &[Instant]) -> f64 {
    let mut gaps: Vec<_> = arrivals.windows(2).map(|pair| (pair[1] - pair[0]).as_secs_f64() * RATE).collect();
    gaps.sort_by(f64::total_cmp);
    let n = gaps.len() as f64;
    let off = |(i, gap): (usize, &f64)| {
        let expected = 1.0 - (-gap).exp();
        (expected - i as f64 / n).abs().max((expected - (i + 1) as f64 / n).abs())
    };
    gaps.iter().enumerate().map(off).fold(0.0, f64::max)
}

/// A timer of 1 ms would release twenty requests at a time: nineteen gaps in twenty near 0, a distance above 0.8.
/// What the server's own threads and a busy machine add is allowed for; the quietest of some runs counts.
#[test]
fn gaps_at_20_000_a_second_are_exponential_at_the_server() {
    let mut distances = Vec::new();
    for _ in 0..15 {
        let arrivals = arrivals();
        // Four standard deviations of a Poisson count are 566.
        assert!(arrivals.len().abs_diff(RATE as usize) < 600, "{}", arrivals.len());
        distances.push(distance(&arrivals));
        if distances.last().is_some_and(|&distance| distance < 0.15) {
            return;
        }
    }
    panic!("{distances:?}");
}
