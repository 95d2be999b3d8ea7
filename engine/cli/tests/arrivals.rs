//! Test of the arrival times at a server: at 20,000 requests per second the gaps must have an exponential distribution.
//!
//! The test's server only logs the kernel's timestamp of each request (SO_TIMESTAMPNS). On loopback this is the time at
//! which the engine sent the request, even if the threads of the server wake late.

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

/// Reads the next packet. Returns its body and the kernel's timestamp since 1970. The client sends one statement at a time,
/// so a read never returns two packets.
fn read_packet(stream: &TcpStream) -> std::io::Result<(Vec<u8>, Option<Duration>)> {
    let mut bytes = Vec::new();
    let mut buffer = [0; 4096];
    let mut control = nix::cmsg_space!(TimeSpec);
    loop {
        let mut parts = [IoSliceMut::new(&mut buffer)];
        let message = recvmsg::<()>(stream.as_raw_fd(), &mut parts, Some(&mut control), MsgFlags::empty())?;
        let arrived_at = message.cmsgs()?.find_map(|control| match control {
            ControlMessageOwned::ScmTimestampns(time) => Some(Duration::from(time)),
            _ => None,
        });
        let length = message.bytes;
        if length == 0 {
            return Err(std::io::ErrorKind::UnexpectedEof.into());
        }
        bytes.extend_from_slice(&buffer[..length]);
        let packet_length = |head: &[u8]| u32::from_le_bytes([head[0], head[1], head[2], 0]) as usize + 4;
        if bytes.len() >= 4 && bytes.len() >= packet_length(&bytes) {
            return Ok((bytes.split_off(4), arrived_at));
        }
    }
}

/// Answers a login and updates sent as text, and sends the arrival time of each update to `log`.
fn serve(mut stream: TcpStream, log: &Sender<Duration>) -> std::io::Result<()> {
    stream.set_nodelay(true)?;
    setsockopt(&stream, ReceiveTimestampns, &true)?;
    let mut greeting = b"\x0a8.0.0-logging\0\x01\0\0\x0012345678\0\x09\xa2\x2d\x02\0\x08\0\x15".to_vec();
    greeting.extend([0; 10]);
    greeting.extend(b"123456789012\0mysql_native_password\0");
    stream.write_all(&[greeting.len() as u8, 0, 0, 0])?;
    stream.write_all(&greeting)?;
    read_packet(&stream)?;
    stream.write_all(b"\x07\0\0\x02\0\0\0\x02\0\0\0")?;
    loop {
        let (body, arrived_at) = read_packet(&stream)?;
        stream.write_all(OK)?;
        if let Some(arrived_at) = arrived_at.filter(|_| body.starts_with(b"\x03UPDATE")) {
            // Sending fails after the end of the test.
            let _ = log.send(arrived_at);
        }
    }
}

/// A connection whose packets the kernel timestamps. The kernel starts to timestamp packets some time after the first
/// request, and continues while one socket requests it. While this connection is open, all packets have timestamps.
fn open_timestamped_connection() -> (TcpStream, TcpStream) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let mut sender = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
    let receiver = listener.accept().unwrap().0;
    setsockopt(&receiver, ReceiveTimestampns, &true).unwrap();
    for _ in 0..10_000 {
        sender.write_all(b"\x01\0\0\0?").unwrap();
        if read_packet(&receiver).unwrap().1.is_some() {
            return (sender, receiver);
        }
        std::thread::sleep(Duration::from_millis(1));
    }
    panic!("the kernel does not timestamp packets");
}

/// The result of one second of load.
struct OneSecond {
    /// Arrival time of each request since 1970.
    arrivals: Vec<Duration>,
    /// Possible numbers of arrivals: from the events that ended to all that were due.
    counted: RangeInclusive<usize>,
    /// p99 of (start - due) in us, for each tenth of the second in which the engine had a free core.
    lags: Vec<u64>,
}

fn run_one_second() -> OneSecond {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    let (sender, log) = channel();
    std::thread::spawn(move || {
        for stream in listener.incoming().take(16).flatten() {
            let sender = sender.clone();
            // An error ends the connection.
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
        // At most 1 % of the interval was spent waiting for a CPU.
        Record::Interval(interval) if interval.generator.run_queue_wait_us < 1000 => {
            Some(interval.generator.lag_us_p99)
        }
        _ => None,
    });
    let mut arrivals: Vec<_> = log.iter().collect();
    arrivals.sort_unstable();
    OneSecond { arrivals, counted: accounting.done as usize..=accounting.due as usize, lags: lags.collect() }
}

/// Kolmogorov-Smirnov distance between the gaps and the exponential distribution with the planned mean.
fn exponential_distance(arrivals: &[Duration]) -> f64 {
    let mut gaps: Vec<_> = arrivals.windows(2).map(|pair| (pair[1] - pair[0]).as_secs_f64() * RATE).collect();
    gaps.sort_by(f64::total_cmp);
    let n = gaps.len() as f64;
    let deviation = |(i, gap): (usize, &f64)| {
        let expected = 1.0 - (-gap).exp();
        (expected - i as f64 / n).abs().max((expected - (i + 1) as f64 / n).abs())
    };
    gaps.iter().enumerate().map(deviation).fold(0.0, f64::max)
}

/// The distance for a timer that ticks every `tick`, so that all requests due in a tick are sent together. With m requests
/// per tick, a share 1 - (1 - e^-m) / m of the gaps is 0, which is the distance.
fn distance_of_ticks(tick: Duration) -> f64 {
    let m = RATE * tick.as_secs_f64();
    1.0 - (1.0 - (-m).exp()) / m
}

/// The best of several runs counts, because requests leave together whenever the machine gives the engine no CPU. The
/// distance must be below that of a timer with ticks of 100 us.
#[test]
fn gaps_at_20_000_a_second_are_exponential_at_the_server() {
    let bound = distance_of_ticks(Duration::from_micros(100));
    let (mut distances, mut lags) = (Vec::new(), Vec::new());
    let _connection = open_timestamped_connection();
    while distances.len() < 8 && (distances.iter().all(|&distance| distance > bound / 2.0) || lags.len() < 5)
    {
        let second = run_one_second();
        let count = second.arrivals.len();
        let (low, high) = (*second.counted.start(), *second.counted.end());
        assert!((low..=high).contains(&count), "{count} of {low} to {high}");
        assert!(
            high.abs_diff(RATE as usize) < 600,
            "four standard deviations of a Poisson count are 566: {high}"
        );
        distances.push(exponential_distance(&second.arrivals));
        lags.extend(second.lags);
    }
    let best = distances.iter().copied().fold(1.0, f64::min);
    assert!(best < bound, "{distances:?}, bound {bound}");
    // If no interval had a free core, the timer cannot be tested. A virtual machine also loses CPU time to its host, and
    // no counter of the guest shows it; the test therefore uses the interval with the smallest lag.
    assert!(lags.iter().min().is_none_or(|&lag| lag < 1000), "p99 of (start - due) in us: {lags:?}");
}

/// Test of the measure: the distance is about 0 for exact gaps, and as calculated for a timer with ticks of 1 ms.
#[test]
fn the_distance_detects_a_coarse_timer() {
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
    assert!(exponential_distance(&exact) < 0.02);
    let tick = Duration::from_millis(1);
    let coarse: Vec<_> = exact.iter().map(|due| tick * due.as_secs_f64().div_euclid(1e-3) as u32).collect();
    assert!((exponential_distance(&coarse) - distance_of_ticks(tick)).abs() < 0.02);
}
