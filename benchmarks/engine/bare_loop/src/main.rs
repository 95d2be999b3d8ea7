//! The least a load generator can do on one thread: wait for replies, discard them, send the next constant message.
//!
//! No schedule, no histogram, no random number, no check of row counts; one transaction in sixteen is timed. What dbdyno-engine costs above this is the price of
//! measuring; what sysbench costs above it is the price of a thread per connection. Each connection asks for rows
//! of its own, so that no two of them wait for each other.

#![allow(clippy::print_stdout, clippy::disallowed_methods)]

mod login;
mod reply;

use std::io::{ErrorKind, Read, Write};
use std::net::TcpStream;
use std::time::{Duration, Instant};

use clap::{Parser, ValueEnum};
use dbdyno_wire::Value;
use dbdyno_wire::mysql::message;
use rustix::event::epoll;
use serde_json::json;

/// A bare epoll loop against a MySQL or MariaDB server; the password is in DBDYNO_PASSWORD.
#[derive(Parser)]
struct Options {
    #[arg(long)]
    host: String,
    #[arg(long)]
    port: u16,
    #[arg(long)]
    user: String,
    #[arg(long)]
    database: String,
    #[arg(long)]
    connections: usize,
    /// Queries are counted from here, in seconds after the start …
    #[arg(long)]
    count_from: f64,
    /// … to here.
    #[arg(long)]
    seconds: f64,
    #[arg(long)]
    workload: Workload,
    #[arg(long)]
    tables: usize,
    #[arg(long)]
    table_size: i64,
    /// SCHED_BATCH.
    #[arg(long)]
    batch: bool,
}

#[derive(Clone, Copy, ValueEnum)]
#[value(rename_all = "snake_case")]
enum Workload {
    OltpPointSelect,
    OltpReadWrite,
}

struct Connection {
    stream: TcpStream,
    /// Constant messages, sent in turn.
    messages: Vec<Vec<u8>>,
    next: usize,
    reply: reply::Reply,
    /// Transactions begun.
    begun: usize,
    /// When the one under way began, where it is timed.
    began: Option<Instant>,
}

/// One transaction in so many is timed.
const TIMED: usize = 16;

/// What was counted between `count_from` and the end.
#[derive(Default)]
struct Counted {
    queries: u64,
    /// Of the transactions that were timed, in us.
    latencies: Vec<u64>,
}

impl Counted {
    /// By nearest rank.
    fn percentile(&self, percent: f64) -> Option<u64> {
        let rank = (percent / 100.0 * self.latencies.len() as f64).ceil().max(1.0) as usize;
        self.latencies.get(rank - 1).copied()
    }
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let options = Options::parse();
    let password = std::env::var("DBDYNO_PASSWORD").unwrap_or_default();
    if options.batch {
        schedule_batch()?;
    }
    let mut connections = Vec::with_capacity(options.connections);
    for number in 0..options.connections {
        connections.push(open(&options, &password, number)?);
    }
    println!("started");
    let counted = play(&mut connections, &options)?;
    let shown = json!({
        "queries": counted.queries,
        "seconds": options.seconds - options.count_from,
        "p95_us": counted.percentile(95.0),
        "p99_us": counted.percentile(99.0),
    });
    println!("{shown}");
    Ok(())
}

/// Runs the loop and returns what was counted in the window.
fn play(connections: &mut [Connection], options: &Options) -> Result<Counted, Box<dyn std::error::Error>> {
    let epoll = epoll::create(epoll::CreateFlags::CLOEXEC)?;
    for (number, connection) in connections.iter_mut().enumerate() {
        connection.stream.set_nonblocking(true)?;
        let data = epoll::EventData::new_u64(number as u64);
        epoll::add(&epoll, &connection.stream, data, epoll::EventFlags::IN | epoll::EventFlags::ET)?;
        send(connection)?;
    }
    let start = Instant::now();
    let from = start + Duration::from_secs_f64(options.count_from);
    let end = start + Duration::from_secs_f64(options.seconds);
    let mut scratch = vec![0; 64 * 1024];
    let mut events = Vec::with_capacity(1024);
    let (mut counted, mut counting) = (Counted::default(), false);
    loop {
        events.clear();
        let wait = rustix::event::Timespec { tv_sec: 0, tv_nsec: 100_000_000 };
        epoll::wait(&epoll, rustix::buffer::spare_capacity(&mut events), Some(&wait))?;
        for event in &events {
            let connection = &mut connections[event.data.u64() as usize];
            match connection.stream.read(&mut scratch) {
                Ok(0) => return Err("the server closed a connection".into()),
                Ok(count) => {
                    if connection.reply.feed(&scratch[..count])? {
                        counted.queries += 1;
                        if connection.next == 0
                            && let Some(began) = connection.began.take()
                        {
                            counted.latencies.push(began.elapsed().as_micros() as u64);
                        }
                        send(connection)?;
                    }
                }
                Err(error) if error.kind() == ErrorKind::WouldBlock => {}
                Err(error) => return Err(error.into()),
            }
        }
        let now = Instant::now();
        if now >= from && !counting {
            (counted, counting) = (Counted::default(), true);
        }
        if now >= end {
            counted.latencies.sort_unstable();
            return Ok(counted);
        }
    }
}

fn send(connection: &mut Connection) -> std::io::Result<()> {
    if connection.next == 0 {
        connection.begun += 1;
        connection.began = connection.begun.is_multiple_of(TIMED).then(Instant::now);
    }
    let message = &connection.messages[connection.next];
    connection.next = (connection.next + 1) % connection.messages.len();
    match connection.stream.write(message)? {
        count if count == message.len() => Ok(()),
        _ => Err(std::io::Error::other("a full socket buffer")),
    }
}

/// Opens connection `number` and prepares its statements.
fn open(options: &Options, password: &str, number: usize) -> Result<Connection, Box<dyn std::error::Error>> {
    let mut stream = TcpStream::connect((options.host.as_str(), options.port))?;
    stream.set_nodelay(true)?;
    login::log_in(&mut stream, &options.user, password, &options.database)?;
    let table = 1 + number % options.tables;
    let id = 1 + (number / options.tables) as i64 * (options.table_size / 4096).max(1) % options.table_size;
    let mut connection = Connection {
        stream,
        messages: Vec::new(),
        next: 0,
        reply: reply::Reply::default(),
        // They do not all time the same turn.
        begun: number,
        began: None,
    };
    for (sql, values) in transaction(options.workload, table, id) {
        let mut message = Vec::new();
        if sql == "BEGIN" {
            message::query(&mut message, sql.as_bytes());
        } else {
            let mut prepare = Vec::new();
            message::prepare(&mut prepare, sql.as_bytes());
            connection.stream.write_all(&prepare)?;
            let statement_id = login::prepared(&mut connection.stream)?;
            message::execute(&mut message, statement_id, &values, true);
        }
        connection.messages.push(message);
    }
    Ok(connection)
}

/// The statements of one event, in sysbench's order, with constant parameters.
fn transaction(workload: Workload, table: usize, id: i64) -> Vec<(String, Vec<Value>)> {
    let name = format!("sbtest{table}");
    let key = vec![Value::Int(id)];
    let point = (format!("SELECT c FROM {name} WHERE id=?"), key.clone());
    if matches!(workload, Workload::OltpPointSelect) {
        return vec![point];
    }
    let range = |what: &str, order: &str| {
        let sql = format!("SELECT {what} FROM {name} WHERE id BETWEEN ? AND ?{order}");
        (sql, vec![Value::Int(id), Value::Int(id + 99)])
    };
    let text = |length| Value::Text(vec![b'7'; length]);
    let insert = format!("INSERT INTO {name} (id, k, c, pad) VALUES (?, ?, ?, ?)");
    let mut statements = vec![("BEGIN".into(), Vec::new())];
    statements.extend(std::iter::repeat_n(point, 10));
    statements.extend([
        range("c", ""),
        range("SUM(k)", ""),
        range("c", " ORDER BY c"),
        range("DISTINCT c", " ORDER BY c"),
        (format!("UPDATE {name} SET k=k+1 WHERE id=?"), key.clone()),
        (format!("UPDATE {name} SET c=? WHERE id=?"), vec![text(119), Value::Int(id)]),
        (format!("DELETE FROM {name} WHERE id=?"), key),
        (insert, vec![Value::Int(id), Value::Int(id), text(119), text(59)]),
        ("COMMIT".into(), Vec::new()),
    ]);
    statements
}

#[allow(unsafe_code)] // rustix has no sched_setscheduler.
fn schedule_batch() -> std::io::Result<()> {
    let parameters = libc::sched_param { sched_priority: 0 };
    // SAFETY: the pointer is valid for the call, and 0 names the calling thread.
    match unsafe { libc::sched_setscheduler(0, libc::SCHED_BATCH, &parameters) } {
        0 => Ok(()),
        _ => Err(std::io::Error::last_os_error()),
    }
}
