//! Jobs with real processes, which are killed, stopped and replaced.

use std::io::{Read, Write};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::ops::Range;
use std::process::Command;

use super::*;
use crate::collective::Collective;
use crate::precision::Precision;
use crate::worker::{ChiefAddress, Work, serve};

const ELEMENTS: usize = 150_000;
const REPLICAS: usize = 4;

/// What a replica computes in a step.
fn value(step: u64, replica: usize) -> Vec<f32> {
    let number = |i: usize| {
        let x = (i * 7919 + replica * 104_729 + step as usize * 31) % 10_007;
        (x as f32 - 5000.0) * 1.37e-3
    };
    (0..ELEMENTS).map(number).collect()
}

/// The sum over all replicas, as one process adds it.
fn expected(step: u64) -> Vec<u32> {
    let mut sum = value(step, 0);
    for replica in 1..REPLICAS {
        for (sum, other) in sum.iter_mut().zip(value(step, replica)) {
            *sum += other;
        }
    }
    bits(&sum)
}

fn bits(values: &[f32]) -> Vec<u32> {
    values.iter().map(|value| value.to_bits()).collect()
}

/// Commands are the step and the first and last replica, 8 bytes each.
struct Adds;

impl Work for Adds {
    fn work(&mut self, command: &[u8], group: &mut dyn Collective) -> Outcome<Vec<u8>> {
        let words: Vec<u64> = (command.as_chunks::<8>().0.iter())
            .map(|word| u64::from_le_bytes(*word))
            .collect();
        let [step, start, end] = words[..] else {
            return Err(Fault::Failed("no such command".to_owned()));
        };
        if step == u64::MAX {
            panic!("a panic of the work");
        }
        let mut values: Vec<_> = (start..end).map(|it| value(step, it as usize)).collect();
        group.all_reduce(step, &mut values, Precision::Float32)?;
        let sum: u64 = bits(&values[0]).into_iter().map(u64::from).sum();
        Ok(sum.to_le_bytes().to_vec())
    }

    fn name(&self, _: &[u8]) -> &'static str {
        "adds"
    }
}

fn settings() -> Settings {
    Settings {
        heartbeat: Duration::from_millis(100),
        patience: Duration::from_millis(1500),
        ..Settings::new("tests")
    }
}

/// Not a test: a worker process of the tests below.
#[test]
fn worker_process() {
    let Some((place, key)) = chief_in_environment() else {
        return;
    };
    let key = JobKey::read(&key).expect("the job's key");
    let _ = serve(place, &key, &settings(), &mut Adds, &|_| ());
    std::process::exit(0);
}

struct ThisProgram;

impl Launch for ThisProgram {
    fn command(&self, _: usize) -> std::io::Result<Command> {
        let mut command = Command::new(std::env::current_exe()?);
        command.args(["--exact", "team::tests::worker_process", "--nocapture"]);
        Ok(command)
    }
}

fn started(workers: usize) -> Team {
    let key = JobKey::new().expect("a key");
    let source = WorkerSource::Started(workers, Arc::new(ThisProgram));
    Team::begin(source, key, settings(), None, (&|| false, &|_| ())).expect("workers")
}

/// Contiguous parts for the members.
fn parts(members: usize) -> Vec<Range<usize>> {
    (0..members)
        .map(|i| i * REPLICAS / members..(i + 1) * REPLICAS / members)
        .collect()
}

fn command(step: u64, part: &Range<usize>) -> Vec<u8> {
    [step, part.start as u64, part.end as u64]
        .iter()
        .flat_map(|word| word.to_le_bytes())
        .collect()
}

/// One attempt of a step: the chief adds, too.
fn attempt(team: &Team, formed: &Formed, step: u64) -> Outcome<Vec<f32>> {
    let parts = parts(formed.seats.len() + 1);
    let number = team.next_number();
    for (&seat, part) in formed.seats.iter().zip(&parts[1..]) {
        team.send(seat, number, command(step, part))?;
    }
    let mut own: Vec<_> = parts[0].clone().map(|it| value(step, it)).collect();
    team.together(|chain| chain.all_reduce(step, &mut own, Precision::Float32))?;
    let sum: u64 = bits(&own[0]).into_iter().map(u64::from).sum();
    for &seat in &formed.seats {
        let answer = team.answer(seat, number, &|| false)?;
        assert_eq!(answer, sum.to_le_bytes(), "all have the same sum");
    }
    Ok(own.swap_remove(0))
}

/// A step, however many attempts it takes; how many members made it.
fn step(team: &Team, step: u64) -> usize {
    for _ in 0..50 {
        let formed = team.form(&|| false).expect("a group");
        match attempt(team, &formed, step) {
            Ok(sum) => {
                assert_eq!(bits(&sum), expected(step), "step {step}");
                return formed.seats.len() + 1;
            }
            Err(_) => team.dissolve(),
        }
    }
    panic!("step {step} was never made");
}

fn signal(process: u32, signal: i32) {
    // SAFETY: a system call without pointers, to a child of this process.
    unsafe { libc::kill(process as i32, signal) };
}

fn process(team: &Team, seat: usize) -> Option<u32> {
    let seats = team.seats();
    seats[seat - 1].process.as_ref().map(|it| it.number)
}

#[test]
fn processes_add_what_one_process_adds() {
    let team = started(3);
    for number in 0..5 {
        assert_eq!(step(&team, number), 4);
    }
    assert!(team.events().is_empty());
    assert!(team.bytes_sent() > 5 * 4 * ELEMENTS as u64);
}

/// Nobody waits for the answer of a worker that was never asked: it has taken the seat of one that was.
#[test]
fn nothing_is_left_of_a_job_that_is_over() {
    for _ in 0..20 {
        let team = started(2);
        let folder = team.shared.folder().expect("a folder");
        let processes: Vec<_> = (1..=2).filter_map(|seat| process(&team, seat)).collect();
        assert!(folder.join(members::KEY_FILE).exists() && processes.len() == 2);
        let shared = Arc::clone(&team.shared);
        drop(team);
        assert!(!folder.exists(), "the key is removed with the job");
        for process in processes {
            assert!(!std::path::Path::new(&format!("/proc/{process}")).exists());
        }
        let seats = &shared.state.lock().seats;
        assert!(
            seats.iter().all(|it| it.child.is_none()),
            "nobody is started again"
        );
    }
}

#[test]
fn who_was_not_asked_does_not_answer() {
    let team = started(1);
    let number = team.next_number();
    let none = team.answer(1, number, &|| false);
    assert_eq!(none.expect_err("nobody answers"), Fault::Closed);
    assert_eq!(step(&team, 1), 2);
}

/// `SIGKILL` and `SIGSTOP`: the step is made by who is left, and somebody takes the seat. Nobody waits for a killed worker.
#[test]
fn who_is_killed_or_hangs_is_lost_and_replaced() {
    let team = started(2);
    for (round, sign) in [libc::SIGKILL, libc::SIGSTOP].into_iter().enumerate() {
        let first = 100 * round as u64;
        assert_eq!(step(&team, first), 3);
        team.set_loss_policy(WorkerLossPolicy {
            replaces: false,
            ..WorkerLossPolicy::default()
        });
        let old = process(&team, 1).expect("it works");
        signal(old, sign);
        assert_eq!(step(&team, first + 1), 2, "with who is left");
        let events = team.events();
        let [
            Event {
                seat: 1,
                process: Some(lost),
                kind: EventKind::Lost { fault, .. },
                ..
            },
        ] = &events[..]
        else {
            panic!("{events:?}");
        };
        assert_eq!(lost.number, old);
        match sign {
            libc::SIGKILL => assert!(fault.to_string().contains("signal: 9"), "{fault}"),
            _ => assert!(matches!(fault, Fault::Silent(_)), "{fault}"),
        }
        team.set_loss_policy(WorkerLossPolicy {
            min_workers: 3,
            ..WorkerLossPolicy::default()
        });
        assert_eq!(step(&team, first + 2), 3, "it waits for the replacement");
        assert_ne!(process(&team, 1), Some(old));
        assert!(matches!(
            team.events()[..],
            [Event {
                kind: EventKind::Came,
                seat: 1,
                ..
            }]
        ));
    }
}

#[test]
fn too_few_workers_are_said_to_be_too_few() {
    let team = started(1);
    team.set_loss_policy(WorkerLossPolicy {
        min_workers: 2,
        wait: Duration::from_millis(300),
        replaces: false,
    });
    signal(process(&team, 1).expect("it works"), libc::SIGKILL);
    let mut formed = (0..1000).map(|_| {
        std::thread::sleep(Duration::from_millis(20));
        team.form(&|| false)
    });
    let too_few = formed.find_map(Result::err).expect("one is lost");
    assert!(
        matches!(
            too_few,
            NotFormed::TooFew {
                alive: 1,
                least: 2,
                ..
            }
        ),
        "{too_few:?}"
    );
}

/// Real processes die at moments that nobody chose; every step has the sum of an undisturbed job.
#[test]
fn every_sum_is_right_whenever_processes_die() {
    let team = started(3);
    let mut state = 0x2545_f491_4f6c_dd1d_u64;
    let mut random = move |most: u64| {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        state % most
    };
    let is_over = AtomicBool::new(false);
    let made: Vec<usize> = std::thread::scope(|scope| {
        scope.spawn(|| {
            while !is_over.load(Ordering::SeqCst) {
                std::thread::sleep(Duration::from_millis(random(220)));
                let seat = 1 + random(3) as usize;
                if let Some(process) = process(&team, seat) {
                    signal(process, libc::SIGKILL);
                }
            }
        });
        let (mut made, mut lost, begun) = (Vec::new(), 0, Instant::now());
        while lost < 20 && begun.elapsed() < Duration::from_secs(60) {
            made.push(step(&team, made.len() as u64));
            let is_lost = |it: &&Event| matches!(it.kind, EventKind::Lost { .. });
            lost += team.events().iter().filter(is_lost).count();
        }
        is_over.store(true, Ordering::SeqCst);
        assert_eq!(lost.min(20), 20, "{lost} were lost");
        made
    });
    assert!(made.iter().any(|&members| members < 4), "{made:?}");
}

/// A worker that listens serves one chief after the other, and only who has the key.
#[test]
fn workers_at_addresses_are_called() {
    let key = JobKey::new().expect("a key");
    let (sender, addresses) = std::sync::mpsc::channel();
    for _ in 0..2 {
        let (key, sender) = (key.clone(), sender.clone());
        std::thread::spawn(move || {
            let any = SocketAddr::from((Ipv4Addr::LOCALHOST, 0));
            let ready = |address| sender.send(address).expect("the test waits");
            serve(
                ChiefAddress::Listen(any),
                &key,
                &settings(),
                &mut Adds,
                &ready,
            )
        });
    }
    let addresses: Vec<(String, SocketAddr)> = (addresses.iter().take(2))
        .map(|address| (address.to_string(), address))
        .collect();
    let source = WorkerSource::At(addresses);
    for round in 0..2 {
        let begun = Team::begin(
            source.clone(),
            key.clone(),
            settings(),
            None,
            (&|| false, &|_| ()),
        );
        let team = begun.expect("both listen");
        assert_eq!(step(&team, round), 3);
        // A panic in the work is an answer, and the worker goes on.
        let number = team.next_number();
        team.send(1, number, command(u64::MAX, &(0..1)))
            .expect("sent");
        let failed = team.answer(1, number, &|| false).expect_err("a panic");
        assert_eq!(failed, Fault::Failed("a panic of the work".to_owned()));
        assert_eq!(step(&team, round + 10), 3);
    }
    let other = JobKey::new().expect("another key");
    let times = Settings {
        start: Duration::from_secs(2),
        naming: Duration::from_millis(300),
        ..settings()
    };
    // Both are named once, while there is time to start them.
    let named = Mutex::new(Vec::new());
    let name = |missing: &[Missing]| named.lock().extend(missing.iter().map(|it| it.seat));
    let refused = Team::begin(source, other, times, None, (&|| false, &name));
    assert_eq!(*named.lock(), [1, 2]);
    let refused = refused.expect_err("another job's key");
    assert!(
        matches!(refused, NotBegun::Missing(Missing { seat: 1, .. })),
        "{refused:?}"
    );
}

/// A worker may be started after the chief, which calls it until its time is over.
#[test]
fn a_worker_that_does_not_listen_yet_is_waited_for() {
    let key = JobKey::new().expect("a key");
    let port = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).expect("a port");
    let address = port.local_addr().expect("an address");
    drop(port);
    let begin = |times: Settings| {
        let source = WorkerSource::At(vec![(address.to_string(), address)]);
        Team::begin(source, key.clone(), times, None, (&|| false, &|_| ()))
    };
    let since = Instant::now();
    let short = Settings {
        start: Duration::from_secs(3),
        ..settings()
    };
    let missing = begin(short).expect_err("nobody listens");
    assert!(matches!(missing, NotBegun::Missing(_)), "{missing:?}");
    assert!(since.elapsed() >= Duration::from_secs(3), "{missing:?}");
    let own_key = key.clone();
    std::thread::spawn(move || {
        std::thread::sleep(Duration::from_secs(3));
        let listens = ChiefAddress::Listen(address);
        serve(listens, &own_key, &settings(), &mut Adds, &|_| ())
    });
    let team = begin(settings()).expect("it listens after a while");
    assert_eq!(team.size(), 2);
}

/// A cable to a worker. What goes over it can be cut: then nothing comes through any more, and neither side gets an
/// error. Connections that are made later work.
struct Cable {
    address: SocketAddr,
    cuts: Arc<AtomicU64>,
}

impl Cable {
    fn to(worker: SocketAddr) -> Self {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).expect("a port");
        let address = listener.local_addr().expect("an address");
        let cuts = Arc::new(AtomicU64::new(0));
        let seen = Arc::clone(&cuts);
        std::thread::spawn(move || {
            for near in listener.incoming() {
                let near = near.expect("a connection");
                let far = TcpStream::connect(worker).expect("the worker listens");
                for (from, to) in [(&near, &far), (&far, &near)] {
                    let (from, to) = (from.try_clone(), to.try_clone());
                    let ends = (from.expect("a copy"), to.expect("a copy"));
                    let cuts = Arc::clone(&seen);
                    std::thread::spawn(move || pass(ends, &cuts));
                }
            }
        });
        Self { address, cuts }
    }
}

/// Passes bytes on until the cable is cut; then the connection stays open and silent.
fn pass((mut from, mut to): (TcpStream, TcpStream), cuts: &AtomicU64) {
    let begun = cuts.load(Ordering::SeqCst);
    let mut bytes = [0; 1 << 16];
    while let Ok(count @ 1..) = from.read(&mut bytes) {
        while cuts.load(Ordering::SeqCst) != begun {
            std::thread::sleep(Duration::from_secs(1));
        }
        if to.write_all(&bytes[..count]).is_err() {
            break;
        }
    }
    let _ = to.shutdown(Shutdown::Both);
}

/// The worker does not know that its chief counts it as lost. It takes the chief's next call all the same, long before it
/// would count the chief as lost.
#[test]
fn a_worker_behind_a_network_that_was_cut_comes_back() {
    let key = JobKey::new().expect("a key");
    let (sender, addresses) = std::sync::mpsc::channel();
    let own = key.clone();
    std::thread::spawn(move || {
        let any = SocketAddr::from((Ipv4Addr::LOCALHOST, 0));
        let ready = |address| sender.send(address).expect("the test waits");
        serve(
            ChiefAddress::Listen(any),
            &own,
            &settings(),
            &mut Adds,
            &ready,
        )
    });
    let cable = Cable::to(addresses.recv().expect("it listens"));
    let source = WorkerSource::At(vec![("the worker".to_owned(), cable.address)]);
    let team =
        Team::begin(source, key, settings(), None, (&|| false, &|_| ())).expect("it listens");
    assert_eq!(step(&team, 1), 2);
    cable.cuts.fetch_add(1, Ordering::SeqCst);
    assert!(step(&team, 2) <= 2);
    let is_back = (0..1000).any(|_| {
        std::thread::sleep(Duration::from_millis(20));
        team.seats()[0].process.is_some() && step(&team, 3) == 2
    });
    assert!(is_back, "{:?}", team.seats());
    assert_eq!(step(&team, 4), 2);
    let lost = team
        .events()
        .into_iter()
        .filter_map(|event| match event.kind {
            EventKind::Lost { fault, .. } => Some(fault),
            _ => None,
        });
    assert!(matches!(lost.collect::<Vec<_>>()[..], [Fault::Silent(_)]));
}
