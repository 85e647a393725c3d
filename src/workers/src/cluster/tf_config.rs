//! `TF_CONFIG`, TensorFlow's description of a cluster:
//! `{"cluster": {"worker": ["host1:2222", "host2:2222"]}, "task": {"type": "worker", "index": 0}}`.

use serde_json::{Map, Value};
use stratoscope_diagnostics::Result;

use super::{Cluster, wrong};

const NAME: &str = "TF_CONFIG";

/// What the variable must look like, in the words of each error.
const EXAMPLE: &str = "`{\"cluster\": {\"worker\": [\"host1:2222\", \"host2:2222\"]}, \
                       \"task\": {\"type\": \"worker\", \"index\": 0}}`";

pub(super) fn read(text: &str) -> Result<Cluster> {
    let value: Value = serde_json::from_str(text)
        .map_err(|error| wrong(NAME, format!("no JSON: {error}"), EXAMPLE))?;
    let Some(jobs) = value.get("cluster").and_then(Value::as_object) else {
        return Err(wrong(NAME, "without `cluster`", EXAMPLE));
    };
    if jobs.contains_key("ps") {
        let expects =
            "jobs `chief` and `worker`; a cluster with `ps` is a `ParameterServerStrategy`'s";
        return Err(wrong(NAME, "a cluster with parameter servers", expects));
    }
    let known = ["chief", "worker", "evaluator"];
    if let Some(other) = jobs.keys().find(|job| !known.contains(&job.as_str())) {
        let expects = "the jobs `chief`, `worker` and `evaluator`";
        return Err(wrong(
            NAME,
            format!("a cluster with the job `{other}`"),
            expects,
        ));
    }
    let (chiefs, workers) = (addresses(jobs, "chief")?, addresses(jobs, "worker")?);
    if chiefs.len() > 1 {
        let found = format!("a cluster with {} chiefs", chiefs.len());
        return Err(wrong(
            NAME,
            found,
            "one chief, or none: then worker 0 is the chief",
        ));
    }
    let all = [chiefs.as_slice(), &workers].concat();
    if all.is_empty() {
        return Err(wrong(NAME, "a cluster without workers", EXAMPLE));
    }
    if let Some(twice) = (1..all.len()).find(|&at| all[..at].contains(&all[at])) {
        let found = format!("`{}` twice", all[twice]);
        return Err(wrong(NAME, found, "another address for each process"));
    }
    let rank = rank(&value, chiefs.len(), workers.len())?;
    Ok(Cluster {
        source: NAME,
        size: all.len(),
        rank,
        chief: all[0].clone(),
        addresses: all,
    })
}

/// The addresses of a job's processes.
fn addresses(jobs: &Map<String, Value>, job: &str) -> Result<Vec<String>> {
    let Some(value) = jobs.get(job) else {
        return Ok(Vec::new());
    };
    let Some(list) = value.as_array() else {
        let expects = "a list: `[\"host1:2222\"]`";
        return Err(wrong(NAME, format!("the job `{job}` as {value}"), expects));
    };
    let checked = |value: &Value| {
        let address = value.as_str().filter(|address| is_address(address));
        address.map(str::to_owned).ok_or_else(|| {
            let expects = "`host:port`, with a port from 1 to 65535";
            wrong(NAME, format!("the address {value} in `{job}`"), expects)
        })
    };
    list.iter().map(checked).collect()
}

fn is_address(text: &str) -> bool {
    let Some((host, port)) = text.rsplit_once(':') else {
        return false;
    };
    let port: Option<u16> = port.parse().ok();
    !host.is_empty() && !host.contains(char::is_whitespace) && port.is_some_and(|port| port > 0)
}

/// The number of this process.
fn rank(value: &Value, chiefs: usize, workers: usize) -> Result<usize> {
    let Some(task) = value.get("task") else {
        return Err(wrong(
            NAME,
            "without `task`: which of the processes is this one?",
            EXAMPLE,
        ));
    };
    let index = match task.get("index") {
        Some(Value::Number(number)) => number.as_u64(),
        Some(Value::String(text)) => text.trim().parse().ok(),
        _ => None,
    };
    let Some(index) = index.and_then(|index| usize::try_from(index).ok()) else {
        let found = match task.get("index") {
            Some(other) => format!("the index {other} in `task`"),
            None => "a `task` without `index`".to_owned(),
        };
        return Err(wrong(NAME, found, "a whole number ≥ 0"));
    };
    let (job, first, count) = match task.get("type").and_then(Value::as_str) {
        Some("chief") => ("chief", 0, chiefs),
        Some("worker") => ("worker", chiefs, workers),
        Some("evaluator") => {
            let expects = "the type `chief` or `worker`: validation is a part of `fit!` here";
            return Err(wrong(NAME, "a task of the type `evaluator`", expects));
        }
        Some(other) => {
            let found = format!("a task of the type `{other}`");
            return Err(wrong(NAME, found, "the type `chief` or `worker`"));
        }
        None => return Err(wrong(NAME, "a `task` without `type`", EXAMPLE)),
    };
    if index >= count {
        let expects = match count {
            0 => format!("a cluster with the job `{job}`, or another type"),
            _ => format!("an index from 0 to {}", count - 1),
        };
        let found = format!("task {index} of `{job}`, which is not in the cluster");
        return Err(wrong(NAME, found, expects));
    }
    Ok(first + index)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn with(cluster: &str, task: &str) -> Result<Cluster> {
        read(&format!("{{\"cluster\": {cluster}, \"task\": {task}}}"))
    }

    #[test]
    fn the_first_worker_is_the_chief_unless_there_is_one() {
        let workers = r#"{"worker": ["a:1", "b:2"]}"#;
        let found = with(workers, r#"{"type": "worker", "index": 1}"#).expect("a cluster");
        assert_eq!(
            (found.rank, found.size, found.chief.as_str()),
            (1, 2, "a:1")
        );
        let chief = r#"{"chief": ["c:1"], "worker": ["a:1", "b:2"], "evaluator": ["e:1"]}"#;
        let found = with(chief, r#"{"type": "worker", "index": "1"}"#).expect("a cluster");
        assert_eq!(
            (found.rank, found.size, found.chief.as_str()),
            (2, 3, "c:1")
        );
    }

    #[test]
    fn each_way_of_being_wrong_has_its_words() {
        let task = r#"{"type": "worker", "index": 0}"#;
        let two = r#"{"worker": ["a:1", "b:2"]}"#;
        for (cluster, task, words) in [
            ("[]", task, "without `cluster`"),
            (r#"{"wroker": ["a:1"]}"#, task, "the job `wroker`"),
            (r#"{"worker": "a:1"}"#, task, "the job `worker` as"),
            (r#"{"worker": ["a"]}"#, task, "the address \"a\""),
            (r#"{"worker": ["a:0"]}"#, task, "the address \"a:0\""),
            (r#"{"worker": [7]}"#, task, "the address 7"),
            (r#"{"worker": ["a:1", "a:1"]}"#, task, "`a:1` twice"),
            (r#"{"worker": []}"#, task, "without workers"),
            (
                r#"{"worker": ["a:1"], "ps": ["p:1"]}"#,
                task,
                "parameter servers",
            ),
            (r#"{"chief": ["a:1", "b:1"]}"#, task, "2 chiefs"),
            (two, "{}", "without `index`"),
            (two, r#"{"index": 0}"#, "without `type`"),
            (
                two,
                r#"{"type": "trainer", "index": 0}"#,
                "the type `trainer`",
            ),
            (
                two,
                r#"{"type": "evaluator", "index": 0}"#,
                "the type `evaluator`",
            ),
            (
                two,
                r#"{"type": "worker", "index": 2}"#,
                "task 2 of `worker`",
            ),
            (two, r#"{"type": "chief", "index": 0}"#, "task 0 of `chief`"),
            (two, r#"{"type": "worker", "index": -1}"#, "the index -1"),
            (
                two,
                r#"{"type": "worker", "index": "zero"}"#,
                "the index \"zero\"",
            ),
        ] {
            let problem = with(cluster, task).expect_err(words);
            assert!(problem.message.contains(words), "{words}: {problem}");
        }
        let problem = read("{").expect_err("no JSON");
        assert!(problem.message.contains("no JSON"), "{problem}");
        let problem = read(r#"{"cluster": {"worker": ["a:1"]}}"#).expect_err("no task");
        assert!(problem.message.contains("without `task`"), "{problem}");
    }
}
