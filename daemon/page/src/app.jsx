// The page: jobs as they go, runs, winners; or, in a report, the one run that stands in the file.
import { render } from "preact";
import { useCallback, useEffect, useRef, useState } from "preact/hooks";
import { ask, listen, takeToken } from "./api.js";
import { Moves } from "./moves.jsx";
import { RunView } from "./run.jsx";
import { name, ratio, when } from "./words.js";
import "./app.css";

function useAsked(path, version) {
  const [state, setState] = useState({});
  useEffect(() => {
    let wanted = true;
    ask(path).then((told) => wanted && setState({ told }), (fault) => wanted && setState({ fault: fault.message }));
    return () => { wanted = false; };
  }, [path, version]);
  return state;
}

function Standing({ state }) {
  if (state.fault) return <p class="bad" role="alert">{state.fault}</p>;
  return state.told ? null : <p class="soft">One moment…</p>;
}

function Progress({ job, live }) {
  const now = { ...job.progress, ...live };
  if (job.state !== "running" || !now.phase) return null;
  const share = Math.min(1, now.elapsed_s / now.budget_s);
  return (
    <span>
      <progress value={share} max="1" aria-label={`progress of ${name(job.kernel)}`} /> {now.phase}, {now.told} tried
      {now.speedup && <span class="win"> {ratio(now.speedup)}</span>}
    </span>
  );
}

const pageOf = (run) => `#/runs/${encodeURIComponent(run)}`; // kernels have any names, and runs theirs
const decoded = (text) => {
  try { return decodeURIComponent(text); } catch { return text; }
};

function Job({ job, live, changed }) {
  const act = (what) => ask(`api/jobs/${job.id}/${what}`, "POST").then(changed, changed);
  const best = job.result?.best;
  return (
    <tr>
      <td class="number extra">{job.id}</td>
      <td><code class="whole" title={job.kernel}>{name(job.kernel)}</code></td>
      <td class="extra">{job.hardware}</td>
      <td class={job.state === "failed" ? "bad" : ""}>{job.state}</td>
      <td class="told">
        <Progress job={job} live={live} />
        {best && <span class="win">{ratio(best.speedup)} as fast ({job.result.basis})</span>}
        {job.state === "done" && !best && job.result?.why}
        {["failed", "queued"].includes(job.state) && job.error && <span class="bad">{job.error.split("\n")[0]}</span>}
        {job.run && <> <a href={pageOf(job.run)} aria-label={`run of ${name(job.kernel)}, job ${job.id}`}>run</a></>}
      </td>
      <td class="extra soft">{when(job.ended ?? job.started ?? job.created)}</td>
      <td>{["queued", "running"].includes(job.state)
        ? <button onClick={() => act("cancel")} aria-label={`Cancel job ${job.id}`}>Cancel</button>
        : <button onClick={() => act("again")} aria-label={`Run job ${job.id} again`}>Again</button>}</td>
    </tr>
  );
}

const EXTRA = ["job", "hardware", "since", "times are", "found", "files"];  // columns that a phone has no room for
const runningFirst = (jobs) => [...jobs].sort((a, b) => (b.state === "running") - (a.state === "running"));

function Jobs({ version, live, changed }) {
  const jobs = useAsked("api/jobs?limit=200", version);
  const status = useAsked("api/status", version);
  const steer = (what) => ask(`api/${what}`, "POST").then(changed, changed);
  return (
    <>
      <h1>Jobs</h1>
      {status.told && (
        <>
          <dl class="figures">
            <div><dt>kernels watched</dt><dd>{status.told.kernels}</dd></div>
            {Object.entries(status.told.jobs).filter(([, count]) => count).map(([state, count]) =>
              <div key={state}><dt>{state}</dt><dd>{count}</dd></div>)}
          </dl>
          {(status.told.wrong ?? []).map((what) => <p class="bad" role="alert" key={what}>{what}</p>)}
          <p>
            <button onClick={() => steer(status.told.paused ? "resume" : "pause")}>
              {status.told.paused ? "Resume the daemon" : "Pause the daemon"}</button>{" "}
            {status.told.slots.map((slot) => <span class="soft" key={slot.device}>{slot.device}: {slot.standing}. </span>)}
          </p>
        </>
      )}
      <Standing state={jobs} />
      {jobs.told && (
        <section class="card"><div class="scroll" tabIndex={0} role="region" aria-label="Jobs">
          <table>
            <caption>{jobs.told.jobs.length ? "What runs, then newest first" : "No jobs yet: save a kernel in a watched folder"}</caption>
            <thead><tr>{["job", "kernel", "hardware", "state", "how it stands", "since", "do"].map((head) =>
              <th scope="col" key={head} class={EXTRA.includes(head) ? "extra" : ""}>{head}</th>)}</tr></thead>
            <tbody>{runningFirst(jobs.told.jobs).map((job) => <Job key={job.id} job={job} live={live[job.id]} changed={changed} />)}</tbody>
          </table>
        </div></section>
      )}
    </>
  );
}

function Runs({ version }) {
  const state = useAsked("api/runs", version);
  return (
    <>
      <h1>Runs</h1>
      <Standing state={state} />
      {state.told && <section class="card"><div class="scroll" tabIndex={0} role="region" aria-label="Runs"><table>
        <caption>Newest first</caption>
        <thead><tr><th scope="col">run</th><th scope="col">how it ended</th></tr></thead>
        <tbody>{state.told.runs.map((run) => <tr key={run.run}><td><a href={pageOf(run.run)}>{run.run}</a></td>
          <td>{run.standing}</td></tr>)}</tbody></table></div></section>}
    </>
  );
}

function Run({ run, version }) {
  const state = useAsked(`api/runs/${encodeURIComponent(run)}`, version);
  return state.told ? <RunView view={state.told} /> : <><h1>Run</h1><Standing state={state} /></>;
}

function Winners({ version }) {
  const [wanted, setWanted] = useState("");
  const state = useAsked("api/winners?limit=1000", version);
  const rows = (state.told?.winners ?? []).filter((row) => JSON.stringify(row).toLowerCase().includes(wanted.toLowerCase()));
  return (
    <>
      <h1>Cache</h1>
      <p><label>Find <input type="search" value={wanted} onInput={(event) => setWanted(event.target.value)} /></label></p>
      <Standing state={state} />
      {state.told && <section class="card"><div class="scroll" tabIndex={0} role="region" aria-label="Winners"><table>
        <caption>{rows.length} of {state.told.winners.length} winners</caption>
        <thead><tr>{["kernel", "speed-up", "times are", "for", "what was done", "found", "files"].map((head) =>
          <th scope="col" key={head} class={EXTRA.includes(head) ? "extra" : ""}>{head}</th>)}</tr></thead>
        <tbody>{rows.map((row) => <tr key={row.key}>
          <td>{row.run ? <a href={pageOf(row.run)}>{row.entry || row.run}</a> : row.entry}{row.damaged && <span class="bad"> damaged</span>}</td>
          <td class="number win">{ratio(row.speedup)}</td><td class="extra">{row.basis}</td><td>{row.target ? `${row.target}, predicted on ${row.device}` : `${row.arch}, ${row.device}`}</td>
          <td><Moves moves={row.actions} /></td>
          <td class="extra">{when(row.created)}</td>
          <td class="extra">{row.files.map((file) => <span key={file}><code class="whole">{file}</code> </span>)}</td></tr>)}</tbody></table></div></section>}
    </>
  );
}

const VIEWS = [["/jobs", "Jobs"], ["/runs", "Runs"], ["/cache", "Cache"]];

function Page() {
  const [place, setPlace] = useState(location.hash.slice(1) || "/jobs");
  const [version, setVersion] = useState(0);
  const [live, setLive] = useState({});
  const [connected, setConnected] = useState(true);
  const [news, setNews] = useState("");
  const main = useRef(null);
  const changed = useCallback(() => setVersion((number) => number + 1), []);
  useEffect(() => {
    const moved = () => { setPlace(location.hash.slice(1) || "/jobs"); main.current?.focus(); };
    addEventListener("hashchange", moved);
    const quiet = listen((event) => {
      if (event.kind === "progress") setLive((known) => ({ ...known, [event.job]: event }));
      else changed();
      if (event.kind === "win") setNews(`${name(event.kernel)} is ${ratio(event.speedup)} as fast`);
    }, setConnected);
    return () => { removeEventListener("hashchange", moved); quiet(); };
  }, []);
  const [, view, run] = place.split("/").map(decoded);
  useEffect(() => { document.title = `fsr: ${run ?? view}`; }, [place]);
  return (
    <>
      <a class="skip" href="#main" onClick={(event) => { event.preventDefault(); main.current.focus(); }}>To the content</a>
      <header>
        <strong>fsr</strong>
        <nav aria-label="Views">{VIEWS.map(([path, title]) =>
          <a key={path} href={`#${path}`} aria-current={place.startsWith(path) ? "page" : undefined}>{title}</a>)}</nav>
        <span role="status" aria-live="polite" class={connected ? "win" : "bad"}>{connected ? news : "The daemon does not answer"}</span>
      </header>
      <main id="main" ref={main} tabIndex={-1}>
        {view === "runs" && run ? <Run run={run} version={version} />
          : view === "runs" ? <Runs version={version} />
          : view === "cache" ? <Winners version={version} />
          : <Jobs version={version} live={live} changed={changed} />}
      </main>
    </>
  );
}

const report = document.getElementById("fsr-run");
const root = document.getElementById("app");
root.replaceChildren();
if (report) {
  render(<main><RunView view={JSON.parse(report.textContent)} /></main>, root);
} else if (takeToken()) {
  render(<Page />, root);
} else {
  render(<main><h1>fsr</h1><p>This page needs the token of the daemon: <code>fsr daemon status</code> shows its address with it.</p></main>, root);
}
