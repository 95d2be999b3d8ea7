//! Arrivals as a server sees them: at 20,000 a second the gaps between requests must still look exponential.
//!
//! The server here only logs when each request came, by the kernel's stamp of its arrival (SO_TIMESTAMPNS): on loopback
//! that is the instant at which it was sent, however late the server's own threads wake. It shares nothing with the engine.

#![allow(clippy::disallowed_methods)] // A test starts processes and opens sockets.

mod common;

use std::io::{IoSliceMut, Write};
use std::net::{TcpListener, TcpStream};
use std::ops::RangeInclusive;
use std::os::fd::AsRawFd;
use std::process::Stdio;
use std::sync::mpsc::{Sender, channel};
use std::time::Duration;

use common::spawn;
use dbdyno_schema::Record;
use dbdyno_schema::record::PhaseName;
use nix::sys::socket::sockopt::ReceiveTimestampns;
use nix::sys::socket::{ControlMessageOwned, MsgFlags, recvmsg, setsockopt};
use nix::sys::time::TimeSpec;
use serde_json::json;

const RATE: f64 = 20_000.0;
const OK: &[u8] = b"\x07\0\0\x01\0\x01\0\x02\0\0\0";

/// The body of the next packet, and when the kernel had it, since 1970.
///
/// A client with one statement under way sends one packet at a time, so a read never holds two.
fn packet(stream: &TcpStream) -> std::io::Result<(Vec<u8>, Option<Duration>)> {
    let mut bytes = Vec::new();
    let mut room = [0; 4096];
    let mut control = nix::cmsg_space!(TimeSpec);
    loop {
        let mut parts = [IoSliceMut::new(&mut room)];
        let message = recvmsg::<()>(stream.as_raw_fd(), &mut parts, Some(&mut control), MsgFlags::empty())?;
        let came = message.cmsgs()?.find_map(|control| match control {
            ControlMessageOwned::ScmTimestampns(time) => Some(Duration::from(time)),
            _ => None,
        });
        let got = message.bytes;
        if got == 0 {
            return Err(std::io::ErrorKind::UnexpectedEof.into());
        }
        bytes.extend_from_slice(&room[..got]);
        let whole = |head: &[u8]| u32::from_le_bytes([head[0], head[1], head[2], 0]) as usize + 4;
        if bytes.len() >= 4 && bytes.len() >= whole(&bytes) {
            return Ok((bytes.split_off(4), came));
        }
    }
}

/// Speaks just enough of the protocol for updates as text, and tells when each came.
fn serve(mut stream: TcpStream, log: &Sender<Duration>) -> std::io::Result<()> {
    stream.set_nodelay(true)?;
    setsockopt(&stream, ReceiveTimestampns, &true)?;
    let mut greeting = b"\x0a8.0.0-logging\0\x01\0\0\x0012345678\0\x09\xa2\x2d\x02\0\x08\0\x15".to_vec();
    greeting.extend([0; 10]);
    greeting.extend(b"123456789012\0mysql_native_password\0");
    stream.write_all(&[greeting.len() as u8, 0, 0, 0])?;
    stream.write_all(&greeting)?;
    packet(&stream)?;
    stream.write_all(b"\x07\0\0\x02\0\0\0\x02\0\0\0")?;
    loop {
        let (body, came) = packet(&stream)?;
        stream.write_all(OK)?;
        if let Some(came) = came.filter(|_| body.starts_with(b"\x03UPDATE")) {
            // The test has ended where nobody listens.
            let _ = log.send(came);
        }
    }
}

/// A connection that the kernel stamps. It begins to stamp a moment after it is first asked to, and goes on while one
/// socket asks: what is sent while this one is held has its stamp.
fn stamping() -> (TcpStream, TcpStream) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let mut sender = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
    let receiver = listener.accept().unwrap().0;
    setsockopt(&receiver, ReceiveTimestampns, &true).unwrap();
    for _ in 0..10_000 {
        sender.write_all(b"\x01\0\0\0?").unwrap();
        if packet(&receiver).unwrap().1.is_some() {
            return (sender, receiver);
        }
        std::thread::sleep(Duration::from_millis(1));
    }
    panic!("the kernel stamps no packet");
}

/// What one second of load was.
struct Second {
    /// When each request came, since 1970.
    arrivals: Vec<Duration>,
    /// How many may have come: those that ended, and with the others all that were due.
    counted: RangeInclusive<usize>,
    /// For each tenth in which a core was free for the engine, its p99 of (start - due) in us.
    lags: Vec<u64>,
}

fn one_second() -> Second {
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
        "report": {"interval_us": 100_000},
        "seed": 3,
    });
    let output =
        spawn("run", &format!("{plan}\n"), Stdio::piped(), Stdio::inherit()).wait_with_output().unwrap();
    assert!(output.status.success());
    let records: Vec<Record> = String::from_utf8(output.stdout)
        .unwrap()
        .lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect();
    let Some(Record::End(end)) = records.last() else { panic!("{:?}", records.last()) };
    let accounting = &end.phases[&PhaseName::Measure].accounting;
    let lags = records.iter().filter_map(|record| match record {
        // A hundredth of the time without a CPU is what two busy cores leave.
        Record::Interval(interval) if interval.generator.run_queue_wait_us < 1000 => {
            Some(interval.generator.lag_us_p99)
        }
        _ => None,
    });
    let mut arrivals: Vec<_> = log.iter().collect();
    arrivals.sort_unstable();
    Second { arrivals, counted: accounting.done as usize..=accounting.due as usize, lags: lags.collect() }
}

/// Kolmogorov-Smirnov distance of the gaps from the exponential with the planned mean.
fn distance(arrivals: &[Duration]) -> f64 {
    let mut gaps: Vec<_> = arrivals.windows(2).map(|pair| (pair[1] - pair[0]).as_secs_f64() * RATE).collect();
    gaps.sort_by(f64::total_cmp);
    let n = gaps.len() as f64;
    let off = |(i, gap): (usize, &f64)| {
        let expected = 1.0 - (-gap).exp();
        (expected - i as f64 / n).abs().max((expected - (i + 1) as f64 / n).abs())
    };
    gaps.iter().enumerate().map(off).fold(0.0, f64::max)
}

/// What a timer that ticks every `tick` would make of exponential gaps: all that is due in a tick leaves together. The
/// distance in closed form, with m events a tick: (1 - e^-m) of the gaps should be shorter than a tick, and in their
/// place are gaps of 0, a share 1 - (1 - e^-m) / m of all.
fn distance_of_ticks(tick: Duration) -> f64 {
    let m = RATE * tick.as_secs_f64();
    1.0 - (1.0 - (-m).exp()) / m
}

/// The quietest of some runs counts: a machine that gives the engine no CPU when it is due bundles requests, and no
/// timer can help that. The bound of the distance is that of a timer of 100 us, a tenth of what is late.
#[test]
fn gaps_at_20_000_a_second_are_exponential_at_the_server() {
    let bound = distance_of_ticks(Duration::from_micros(100));
    let (mut distances, mut lags) = (Vec::new(), Vec::new());
    let _stamping = stamping();
    while distances.len() < 8 && (distances.iter().all(|&distance| distance > bound / 2.0) || lags.len() < 5)
    {
        let second = one_second();
        let came = second.arrivals.len();
        let (low, high) = (*second.counted.start(), *second.counted.end());
        assert!((low..=high).contains(&came), "{came} of {low} to {high}");
        assert!(
            high.abs_diff(RATE as usize) < 600,
            "four standard deviations of a Poisson count are 566: {high}"
        );
        distances.push(distance(&second.arrivals));
        lags.extend(second.lags);
    }
    let best = distances.iter().copied().fold(1.0, f64::min);
    assert!(best < bound, "{distances:?}, bound {bound}");
    // Without a free core in any interval there is nothing to say about the timer alone. A virtual machine also loses
    // CPU time to its host, which no counter of the guest shows: the interval that lost least tells what the timer adds.
    assert!(lags.iter().min().is_none_or(|&lag| lag < 1000), "p99 of (start - due) in us: {lags:?}");
}

/// The measure itself: gaps as they should be are at no distance, and those of a timer of 1 ms at its distance.
#[test]
fn the_distance_tells_a_coarse_timer() {
    let mut due = 0.0;
    let mut state = 1u64;
    let exact: Vec<Duration> = (0..20_000)
        .map(|_| {
            // Numerical Recipes' linear congruence; its high bits are random enough for a mean of 20,000.
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            due -= (((state >> 11) as f64 + 0.5) / (1u64 << 53) as f64).ln() / RATE;
            Duration::from_secs_f64(due)
        })
        .collect();
    assert!(distance(&exact) < 0.02);
    let tick = Duration::from_millis(1);
    let coarse: Vec<_> = exact.iter().map(|due| tick * due.as_secs_f64().div_euclid(1e-3) as u32).collect();
    assert!((distance(&coarse) - distance_of_ticks(tick)).abs() < 0.02);
}
