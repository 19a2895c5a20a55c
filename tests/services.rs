//! Can a user write every service law, and is every slip in one told with its place? Every test runs
//! the binary in a folder of its own.

use assert_cmd::Command;
use serde_json::Value;
use std::fs;
use tempfile::TempDir;

const MODEL: &str = r#"policy = "pull"
arrivals.rate = 0.4
pools = [{ name = "a", share = 1.0, buffer = 3, service.LAW }]
fluid.horizon = 5.0
finite = { sizes = [20], replications = 2, horizon = 10.0, warmup = 2.0 }
"#;

/// Forty service times of two kinds.
fn times() -> String {
    let time =
        |i: u32| if i.is_multiple_of(4) { 3.0 + f64::from(i) / 8.0 } else { 0.5 + f64::from(i) / 64.0 };
    let lines: String = (0..40).map(|i| format!("{i},{},x\n", time(i))).collect();
    format!("# measured on a machine\njob,seconds,\"a, b\"\n{lines}")
}

struct Place(TempDir);

impl Place {
    fn new() -> Self {
        let place = Self(TempDir::new().unwrap());
        place.write("times.csv", &times());
        place
    }

    fn write(&self, name: &str, text: &str) {
        fs::write(self.0.path().join(name), text).unwrap();
    }

    fn law(&self, law: &str) {
        self.write("m.toml", &MODEL.replace("LAW", law));
    }

    fn run(&self, args: &[&str]) -> (i32, String, String) {
        let mut command = Command::cargo_bin("fluidlimit").unwrap();
        let output = command
            .current_dir(self.0.path())
            .args(args)
            .timeout(std::time::Duration::from_secs(120))
            .output()
            .unwrap();
        let text = |b: &[u8]| String::from_utf8(b.to_vec()).unwrap();
        (output.status.code().unwrap_or(-1), text(&output.stdout), text(&output.stderr))
    }

    fn json(&self, args: &[&str]) -> Value {
        let (code, out, err) = self.run(args);
        assert_eq!(code, 0, "{args:?}: {err}");
        serde_json::from_str(&out).unwrap()
    }

    /// One clear error, exit code 2, nothing on standard output.
    #[track_caller]
    fn refused(&self, args: &[&str], says: &[&str]) {
        let (code, out, err) = self.run(args);
        assert_eq!((code, out.as_str()), (2, ""), "{args:?}: {err}");
        assert_eq!(err.matches("error:").count(), 1, "{args:?}: {err}");
        assert!(!err.contains("panicked"), "{err}");
        for text in says {
            assert!(err.contains(text), "{args:?} does not say {text:?}:\n{err}");
        }
    }
}

/// What is written, what `check` calls it, mean, SCV and phases.
const LAWS: [(&str, &str, f64, f64, u64); 15] = [
    ("exponential.rate = 2", "exponential", 0.5, 1.0, 1),
    ("erlang = { stages = 4, rate = 2 }", "Erlang of 4 stages", 2.0, 0.25, 4),
    ("erlang = { stages = 4, mean = 1 }", "Erlang of 4 stages", 1.0, 0.25, 4),
    (
        "hyperexponential = { probabilities = [0.5, 0.5], rates = [1, 2] }",
        "hyperexponential",
        0.75,
        11.0 / 9.0,
        2,
    ),
    (
        "hyperexponential = { probabilities = [0.5, 0.5], rates = [1, 2], mean = 3 }",
        "hyperexponential",
        3.0,
        11.0 / 9.0,
        2,
    ),
    ("coxian = { rates = [2, 0.5], continue = [0.25] }", "Coxian", 1.0, 2.0, 2),
    ("coxian = { rates = [4], continue = [] }", "Coxian", 0.25, 1.0, 1),
    ("phase-type = { initial = [1, 0], generator = [[-3, 2], [1, -2]] }", "phase type", 1.0, 1.0, 2),
    ("moments = { mean = 2, scv = 4 }", "hyperexponential with balanced means, of two moments", 2.0, 4.0, 2),
    ("moments = { mean = 2, scv = 0.75 }", "Coxian-2, of two moments", 2.0, 0.75, 2),
    ("moments = { mean = 2, scv = 0.3 }", "Erlang of 3 or 4 stages, of two moments", 2.0, 0.3, 4),
    ("weibull = { shape = 0.5, scale = 1 }", "Weibull of shape 0.5 as a mixture", 2.0, 5.0, 16),
    ("gamma = { shape = 0.5, scale = 1, mean = 3 }", "gamma of shape 0.5 as a mixture", 3.0, 2.0, 15),
    ("gamma = { shape = 0.5, mean = 1, phases = 12 }", "gamma of shape 0.5 as a mixture", 1.0, 2.0, 12),
    ("lomax = { shape = 10, scale = 9 }", "Lomax of shape 10 as a mixture", 1.0, 1.25, 16),
];

#[test]
fn every_law_is_read_and_described() {
    let place = Place::new();
    for (law, label, mean, scv, phases) in LAWS {
        place.law(law);
        let found = place.json(&["check", "m.toml", "--format", "json"]);
        let service = &found["model"]["services"]["a"];
        assert_eq!(service["law"], label, "{law}");
        assert!((service["mean"].as_f64().unwrap() / mean - 1.0).abs() < 1e-13, "{law}: {service}");
        assert!((service["scv"].as_f64().unwrap() / scv - 1.0).abs() < 1e-5, "{law}: {service}");
        assert_eq!(service["phases"], phases, "{law}");
        let mixture = label.contains("mixture");
        assert_eq!(service["survival_distance"].as_f64().is_some_and(|d| d > 0.0 && d < 1e-3), mixture);
        let (code, out, _) = place.run(&["check", "m.toml"]);
        assert!(code == 0 && out.contains(&format!("a: {label}")), "{out}");
        assert_eq!(out.contains("survival functions at most"), mixture);
    }
}

#[test]
fn every_law_is_solved_and_simulated() {
    let place = Place::new();
    for (law, _, mean, _, _) in LAWS {
        place.law(law);
        let rate = format!("arrivals.rate={}", 0.7 / mean);
        let found = place.json(&["solve", "m.toml", "--format", "json", "--set", &rate]);
        // Below capacity the busy fraction is the load, whatever the law.
        let busy = found["fluid"]["tails"]["a"][0].as_f64().unwrap();
        assert!((busy - 0.7).abs() < 1e-10, "{law}: {busy}");
        let found = place.json(&["simulate", "m.toml", "--format", "json", "--set", &rate]);
        assert!(found["finite"][0]["measures"]["utilisation"]["value"].as_f64().unwrap() > 0.2, "{law}");
    }
}

#[test]
fn slips_in_laws_are_refused_with_their_place() {
    let place = Place::new();
    let many = format!(
        "hyperexponential = {{ probabilities = [{}], rates = [1] }}",
        vec!["0.0004"; 2500].join(", ")
    );
    let cases: &[(&str, &[&str])] = &[
        ("deterministic.value = 1", &["periodic", "service.erlang"]),
        ("uniform = { from = 0, to = 1 }", &["periodic"]),
        ("erlang = { stages = 0, rate = 1 }", &["`stages`", "1 to 2000"]),
        ("erlang = { stages = 3000, rate = 1 }", &["`stages`", "1 to 2000"]),
        (&many, &["2500", "at most 2000 phases"]),
        ("hyperexponential = { probabilities = [0.5, 0.4], rates = [1, 2] }", &["sum to 0.9", "sum to 1"]),
        ("hyperexponential = { probabilities = [0.5, 0.5], rates = [1, -2] }", &["-2", "1e-100"]),
        ("hyperexponential = { probabilities = [0.5, 0.5], rates = [1, inf] }", &["inf"]),
        ("coxian = { rates = [1, 2], continue = [0.5, 0] }", &["length 1", "leave out the 0"]),
        ("coxian = { rates = [1, nan], continue = [0.5] }", &["NaN"]),
        ("phase-type = { initial = [1, 0], generator = [[1, 1], [0, -1]] }", &["diagonal", "negative"]),
        ("phase-type = { initial = [1, 0], generator = [[-1, 2], [0, -1]] }", &["sums to 1", "0 or less"]),
        ("phase-type = { initial = [1, 0], generator = [[-1, 1], [1, -1]] }", &["for ever", "phase 1"]),
        ("moments = { mean = 1, scv = 0 }", &["`scv`", "0.0005"]),
        ("weibull = { shape = 1.5, scale = 1 }", &["shape", "below 1"]),
        ("gamma = { shape = 1, scale = 1 }", &["shape", "below 1"]),
        ("lomax = { shape = 1, scale = 1 }", &["shape", "infinite"]),
    ];
    for (law, says) in cases {
        place.law(law);
        for command in ["check", "solve"] {
            place.refused(&[command, "m.toml"], says);
            place.refused(&[command, "m.toml"], &["m.toml:3:"]);
        }
    }
}

#[test]
fn data_are_fitted_wherever_the_program_runs() {
    let place = Place::new();
    place.law("data = { file = \"times.csv\", column = \"seconds\" }");
    let service = |found: &Value| found["model"]["services"]["a"].clone();
    let found = place.json(&["check", "m.toml", "--format", "json"]);
    let by_name = service(&found);
    assert_eq!(by_name["data"]["times"], 40);
    assert!(by_name["data"]["log_likelihood"].as_f64().unwrap() < 0.0);
    let (_, out, _) = place.run(&["check", "m.toml"]);
    assert!(out.contains("fitted to `times.csv`, 40 times, log-likelihood"), "{out}");
    // By number, from another folder, and with another mean.
    let elsewhere = TempDir::new().unwrap();
    place.law("data = { file = \"times.csv\", column = 2 }");
    let path = place.0.path().join("m.toml");
    let args = ["check", path.to_str().unwrap(), "--format", "json"];
    let output =
        Command::cargo_bin("fluidlimit").unwrap().current_dir(elsewhere.path()).args(args).output().unwrap();
    assert_eq!(service(&serde_json::from_slice(&output.stdout).unwrap()), by_name);
    place.law("data = { file = \"times.csv\", column = \"seconds\", mean = 1 }");
    let rescaled = service(&place.json(&["check", "m.toml", "--format", "json"]));
    assert!((rescaled["mean"].as_f64().unwrap() - 1.0).abs() < 1e-13);
    assert!((rescaled["scv"].as_f64().unwrap() / by_name["scv"].as_f64().unwrap() - 1.0).abs() < 1e-12);
    // Other data make another model.
    place.law("data = { file = \"times.csv\", column = \"seconds\" }");
    place.write("times.csv", &times().replace("0,3,x", "0,3.5,x"));
    let other = place.json(&["check", "m.toml", "--format", "json"]);
    assert_ne!(other["model"]["hash"], found["model"]["hash"]);
}

#[test]
fn more_phases_than_the_memory_holds_are_refused() {
    let place = Place::new();
    let pool = |i: u32| {
        format!("[[pools]]\nname = \"p{i}\"\nshare = 0.05\nservice.erlang = {{ stages = 2000, mean = 1 }}\n")
    };
    let pools: String = (0..20).map(pool).collect();
    place.write("m.toml", &format!("policy = \"pull\"\narrivals.rate = 0.4\n{pools}"));
    place.refused(&["check", "m.toml"], &["m.toml:44:", "`p10`", "fewer phases"]);
}

/// The contents of the data file, the column asked for, and what is said.
const BAD_DATA: [(&str, &str, &[&str]); 12] = [
    ("", "seconds", &["the data file is empty", "bad.csv"]),
    ("# nothing\n\n", "seconds", &["the data file is empty"]),
    ("job,seconds\n", "seconds", &["no service times"]),
    ("job,seconds\n1,2\n2,abc\n", "seconds", &["bad.csv:3:3", "`abc` is not a service time"]),
    ("job,seconds\n1,2\n# a note\n\n2,\n", "seconds", &["bad.csv:5:3", "missing"]),
    ("job,seconds\n1,2\n2,-1.5\n", "seconds", &["bad.csv:3:3", "-1.5", "0 or positive"]),
    ("job,seconds\n1,2\n2,inf\n", "seconds", &["bad.csv:3:3", "inf", "finite"]),
    ("job,seconds\n1,2\n2\n", "seconds", &["bad.csv:3:1", "column 2 is missing"]),
    ("job,seconds\n1,2\n", "secnds", &["bad.csv:1:1", "no column `secnds`", "did you mean `seconds`"]),
    ("job,seconds\n1,2\n", "3", &["bad.csv:1:1", "no column `3`", "1 to 2"]),
    ("seconds\n1\n", "seconds", &["at least 2"]),
    ("seconds\n0\n0\n", "seconds", &["mean", "0"]),
];

#[test]
fn faults_of_a_data_file_are_told_with_their_place() {
    let place = Place::new();
    for (text, column, says) in BAD_DATA {
        place.write("bad.csv", text);
        place.law(&format!("data = {{ file = \"bad.csv\", column = \"{column}\" }}"));
        place.refused(&["check", "m.toml"], says);
        place.refused(&["check", "m.toml"], &["the data are named here", "m.toml:3:"]);
        place.refused(&["fit", "bad.csv", "--column", column], says);
    }
    place.refused(&["fit", "times.csv"], &["3 columns", "`seconds`", "`a, b`"]);
    place.refused(&["fit", "none.csv"], &["none.csv", "no such file"]);
    place.refused(&["fit", "."], &["a directory"]);
    place.refused(&["fit", "times.csv", "--column", "seconds", "--plot", "x.gif"], &[".svg"]);
    place.refused(&["fit", "times.csv", "--column", "seconds", "--out", "no/x"], &["does not exist"]);
    place.law("data.file = \"none.csv\"");
    place.refused(&["check", "m.toml"], &["no such file", "none.csv", "m.toml:3:"]);
}

#[test]
fn the_fit_can_be_pasted_into_a_model() {
    let place = Place::new();
    let fit = place.json(&["fit", "times.csv", "--column", "seconds", "--format", "json"]);
    assert_eq!(fit["data"]["times"], 40);
    let fits = fit["fits"].as_array().unwrap();
    assert_eq!(fits.len(), 6);
    for law in fits {
        let toml = law["toml"].as_str().unwrap();
        place.law(toml.strip_prefix("service.").unwrap());
        let model = place.json(&["check", "m.toml", "--format", "json"]);
        for key in ["mean", "scv"] {
            let (read, told) = (&model["model"]["services"]["a"][key], &law[key]);
            assert!((read.as_f64().unwrap() / told.as_f64().unwrap() - 1.0).abs() < 1e-12, "{toml}");
        }
        assert_eq!(model["model"]["services"]["a"]["phases"], law["phases"], "{toml}");
    }
    let best = fits.iter().filter(|f| f["family"] != "moments").map(|f| f["bic"].as_f64().unwrap());
    let chosen = fits.iter().find(|f| f["family"] == fit["chosen"]).unwrap();
    assert_eq!(chosen["bic"].as_f64().unwrap(), best.fold(f64::INFINITY, f64::min));
    assert_eq!(chosen["toml"], fit["toml"]);
    let (code, out, _) = place.run(&["fit", "times.csv", "--column", "2"]);
    assert!(code == 0 && out.contains("chosen") && out.contains(fit["toml"].as_str().unwrap()), "{out}");
    let (code, out, _) = place.run(&["fit", "times.csv", "--column", "2", "--format", "csv"]);
    assert_eq!(code, 0);
    let rows: Vec<_> =
        csv::Reader::from_reader(out.as_bytes()).into_records().map(|row| row.unwrap()).collect();
    assert_eq!(rows.iter().filter(|row| &row[7] == "true").count(), 1);
    let args = ["fit", "times.csv", "--column", "2", "--out", "fit.txt", "--plot", "fit.svg"];
    assert_eq!(place.run(&args), (0, String::new(), "note: wrote fit.svg\n".into()));
    assert_eq!(place.run(&[&args[..], &["--quiet"]].concat()), (0, String::new(), String::new()));
    let figure = fs::read_to_string(place.0.path().join("fit.svg")).unwrap();
    assert!(figure.contains("(chosen)"));
    assert!(fs::read_to_string(place.0.path().join("fit.txt")).unwrap().contains("40 service times"));
}
