//! The group that the members of a job form. It is formed anew whenever a worker came or is lost.

use std::net::SocketAddr;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use parking_lot::MutexGuard;

use super::{LOOK, Shared, State, Team};
use crate::chain::Chain;
use crate::fault::{Fault, Outcome};
use crate::hello::{Hello, Role};
use crate::link::Link;
use crate::message::{Command, Form};
use crate::mpi::Mpi;
use crate::nccl::{self, Nccl};
use crate::settings::Transport;

/// How often members that all live may fail to connect to each other.
const MOST_ATTEMPTS: usize = 20;

/// A group.
pub(super) struct Group {
    version: u64,
    formed: Formed,
    pub(super) chain: Chain,
}

/// The members of a group.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Formed {
    /// The membership.
    pub generation: u64,
    /// The seats of its workers, in their order. The chief is before them.
    pub seats: Vec<usize>,
}

/// Why there is no group.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum NotFormed {
    /// Too few have come in the time of the policy.
    TooFew {
        /// Members that are there, the chief among them.
        alive: usize,
        /// Members that must be.
        least: usize,
        /// How long it was waited.
        waited: Duration,
    },
    /// All live, but cannot connect.
    Unconnected(Fault),
    /// The user does not wait any longer.
    Interrupted,
}

/// A worker as its neighbors see it.
#[derive(Clone, Copy)]
struct Neighbor {
    seat: usize,
    id: u64,
    hop: SocketAddr,
    chief: SocketAddr,
}

impl Team {
    /// The group of all who are there; formed anew if anybody came or is lost since it was formed.
    ///
    /// # Errors
    /// See [`NotFormed`].
    pub fn form(&self, asked: &dyn Fn() -> bool) -> Result<Formed, NotFormed> {
        let mut group = self.formed.lock();
        let mut last = Fault::Aborted;
        for _ in 0..MOST_ATTEMPTS {
            let (version, members) = self.enough(asked)?;
            if let Some(group) = &*group
                && group.version == version
            {
                return Ok(group.formed.clone());
            }
            *group = None;
            match self.connected(&members, asked) {
                Ok((generation, chain)) => {
                    let formed = Formed {
                        generation,
                        seats: members.iter().map(|it| it.seat).collect(),
                    };
                    *self.shared.aborter.lock() = Some(chain.aborter());
                    *group = Some(Group {
                        version,
                        formed,
                        chain,
                    });
                }
                Err(_) if asked() => return Err(NotFormed::Interrupted),
                // What MPI or NCCL refuses, it refuses again.
                Err(fault @ (Fault::Failed(_) | Fault::Refused(_)))
                    if self.communication().transport != Transport::Tcp =>
                {
                    return Err(NotFormed::Unconnected(fault));
                }
                Err(fault) => last = fault,
            }
        }
        Err(NotFormed::Unconnected(last))
    }

    /// Works with the group that was formed last.
    ///
    /// # Errors
    /// What `work` returns, and [`Fault::Aborted`] where there is no group. After an error the group is formed anew.
    pub fn together<T>(&self, work: impl FnOnce(&mut Chain) -> Outcome<T>) -> Outcome<T> {
        let mut group = self.formed.lock();
        let Some(group) = &mut *group else {
            return Err(Fault::Aborted);
        };
        let outcome = work(&mut group.chain);
        if outcome.is_err() {
            self.shared.state.lock().version += 1;
            self.shared.abort();
        }
        outcome
    }

    /// The group is of no use any more: it is formed anew before it works again.
    pub fn dissolve(&self) {
        self.shared.state.lock().version += 1;
        self.shared.abort();
    }

    /// The bytes that this process has sent in the group that was formed last.
    pub fn bytes_sent(&self) -> u64 {
        let group = self.formed.lock();
        (group.as_ref()).map_or(0, |group| group.chain.aborter().bytes_sent())
    }

    /// Waits until there are as many members as the policy asks for.
    fn enough(&self, asked: &dyn Fn() -> bool) -> Result<(u64, Vec<Neighbor>), NotFormed> {
        let since = Instant::now();
        let mut state = self.shared.state.lock();
        loop {
            let members = neighbors(&state);
            let policy = self.loss_policy();
            let least = policy.min_workers.min(state.seats.len() + 1);
            if members.len() + 1 >= least {
                return Ok((state.version, members));
            }
            if asked() {
                return Err(NotFormed::Interrupted);
            }
            if since.elapsed() >= policy.wait {
                return Err(NotFormed::TooFew {
                    alive: members.len() + 1,
                    least,
                    waited: since.elapsed(),
                });
            }
            self.shared.changed.wait_for(&mut state, LOOK);
        }
    }

    /// Connects each member to the one behind it.
    fn connected(&self, members: &[Neighbor], asked: &dyn Fn() -> bool) -> Outcome<(u64, Chain)> {
        let shared = &self.shared;
        let generation = shared.generation.fetch_add(1, Ordering::SeqCst) + 1;
        let (Some(first), Some(last)) = (members.first(), members.last()) else {
            return Ok((generation, super::alone()));
        };
        let number = self.next_number();
        let communication = self.communication();
        let transport = communication.transport;
        let name = match transport {
            Transport::Nccl => Some(nccl::new_name()?),
            Transport::Tcp | Transport::Mpi => None,
        };
        for (index, member) in members.iter().enumerate() {
            let form = Form {
                generation,
                position: index + 1,
                size: members.len() + 1,
                left: match index {
                    0 => 0,
                    _ => members[index - 1].id,
                },
                right: members.get(index + 1).map_or(0, |next| next.id),
                right_address: members.get(index + 1).map_or(member.chief, |next| next.hop),
                transport,
                nccl: name.clone(),
            };
            shared.send(member.seat, number, &Command::Form(form))?;
        }
        let all_are_connected = || {
            members.iter().try_for_each(|member| {
                let answer = shared.answer(member.seat, number, asked);
                // MPI and NCCL fail for all, and nobody is at fault.
                let answer = answer.inspect_err(|fault| match (transport, fault) {
                    (Transport::Mpi, _) | (Transport::Nccl, Fault::Failed(_)) => {}
                    (Transport::Tcp | Transport::Nccl, fault) => {
                        shared.unconnected(member, members, fault);
                    }
                });
                answer.map(|_| ())
            })
        };
        let size = members.len() + 1;
        if transport == Transport::Mpi {
            let mpi = Mpi::of_process(0)?;
            all_are_connected()?;
            let hop = |other| mpi.hop(other, generation, &shared.key, shared.settings.patience);
            return Ok((
                generation,
                Chain::new(0, size, hop(last.id)?, hop(first.id)?)?,
            ));
        }
        let hello = Hello::new(&shared.settings, Role::Hop, 0, generation);
        let right = hello.dial(first.hop, &shared.key, &shared.settings);
        let (right, _) = right.inspect_err(|fault| {
            let fault = Fault::Broken(format!("the chief cannot reach it: {fault}"));
            shared.lose(first.seat, first.id, fault);
        })?;
        all_are_connected()?;
        let left = shared.hop(generation, last.id)?;
        let mut chain = Chain::new(0, size, left, right)?;
        if let Some(name) = name {
            let device = communication.cuda_device.unwrap_or(0);
            let nccl = Nccl::join(&name, (0, size), device, shared.settings.patience)?;
            nccl.wait()?;
            chain = chain.with(nccl)?;
        }
        Ok((generation, chain))
    }
}

fn neighbors(state: &MutexGuard<'_, State>) -> Vec<Neighbor> {
    let seats = state.seats.iter().enumerate();
    let of_seat = |(index, it): (usize, &super::Seat)| {
        it.member.as_ref().map(|member| Neighbor {
            seat: index + 1,
            id: member.id,
            hop: member.hop,
            chief: member.chief,
        })
    };
    seats.filter_map(of_seat).collect()
}

impl Shared {
    /// A member could not take its place. Where all of them live, the network keeps it from its neighbor: the group is
    /// formed without it.
    fn unconnected(&self, member: &Neighbor, members: &[Neighbor], fault: &Fault) {
        if *fault == Fault::Aborted {
            return;
        }
        let is_here = |it: &Neighbor| {
            let state = self.state.lock();
            let seat = state.seats[it.seat - 1].member.as_ref();
            seat.is_some_and(|member| member.id == it.id)
        };
        match members.iter().all(is_here) {
            true => self.lose(member.seat, member.id, fault.clone()),
            // Somebody else is lost, and the abort has reached everybody.
            false => self.abort(),
        }
    }

    /// The hop from the last member.
    fn hop(&self, generation: u64, from: u64) -> Outcome<Link> {
        let since = Instant::now();
        let mut state = self.state.lock();
        loop {
            let of = |it: &crate::listener::Visitor| {
                (it.hello.generation, it.hello.member) == (generation, from)
            };
            if let Some(at) = state.hops.iter().position(of) {
                return Ok(state.hops.swap_remove(at).link);
            }
            if since.elapsed() >= self.settings.patience {
                return Err(Fault::Silent(since.elapsed()));
            }
            self.changed.wait_for(&mut state, LOOK);
        }
    }
}
