// One run: how it went, what won, and why that is believed. The same in the page and in a report.
import { useMemo } from "preact/hooks";
import { Archive, Family, Roof, SpeedUp } from "./charts.jsx";
import { Diff } from "./diff.jsx";
import { Moves } from "./moves.jsx";
import { name, ratio, sentence, time } from "./words.js";

function Figures({ view }) {
  const { result } = view;
  const best = result?.best;
  const rows = [["status", result?.status ?? view.standing]];
  if (best) rows.push(["speed-up", ratio(best.speedup)], ["95 % interval", best.speedup_ci95.map(ratio).join(" to ")],
    ["winner", time(best.median_ns)]);
  if (result) rows.push(["original", time(result.baseline.median_ns)], ["times are", result.basis],
    ["evaluated", result.evaluated], ["tests", `${result.tests.passed} of ${result.tests.cases} passed`]);
  return <dl class="figures">{rows.map(([term, value]) => <div key={term}><dt>{term}</dt><dd>{value}</dd></div>)}</dl>;
}

function Evidence({ view }) {
  const best = view.result?.best;
  if (!view.result) return null;
  if (!best) return <section class="card wide" aria-labelledby="evidence"><h2 id="evidence">Why it was left as it is</h2>
    <p>{sentence(view.result.why ?? view.standing)}</p></section>;
  const silent = Object.entries(best.sanitizers ?? {}).map(([tool, said]) => `${tool}: ${said}`).join(", ");
  return (
    <section class="card wide" aria-labelledby="evidence">
      <h2 id="evidence">Evidence</h2>
      <p>{sentence(view.result.why)} {silent && <span>Sanitizers: {silent}.</span>}</p>
      <p>What was done: <Moves moves={best.actions} /></p>
      <div class="scroll" tabIndex={0} role="region" aria-label="Sizes the search did not see">
        <table>
          <caption>At sizes that the search did not see</caption>
          <thead><tr><th scope="col">sizes</th><th scope="col">speed-up</th><th scope="col">interval</th></tr></thead>
          <tbody>
            {(best.held_out ?? []).map((one, index) => (
              <tr key={index}>
                <td><code>{Object.entries(one.sizes).map(([size, value]) => `${size} = ${value}`).join(", ")}</code></td>
                <td class="number">{ratio(one.speedup)}</td><td class="number">{ratio(one.low)} to {ratio(one.high)}</td>
              </tr>
            ))}
          </tbody>
        </table>
      </div>
      <p>What holds the winner back: {(best.bottlenecks ?? []).slice(0, 3)
        .map((one) => `${one.name}, ${Math.round(100 * one.share)} % (${one.evidence})`).join("; ") || "unknown"}.</p>
    </section>
  );
}

function Trials({ view }) {
  return (
    <details class="card">
      <summary>All {view.trials.length} candidates as a table</summary>
      <div class="scroll" tabIndex={0} role="region" aria-label="All candidates">
        <table>
          <caption>Candidates in the order of their outcomes</caption>
          <thead><tr>{["id", "from", "move", "status", "time", "speed-up", "by"].map((head) =>
            <th scope="col" key={head}>{head}</th>)}</tr></thead>
          <tbody>
            {view.trials.map((trial) => (
              <tr key={trial.id}>
                <td class="number">{trial.id}</td><td class="number">{trial.parent ?? ""}</td><td><code>{trial.move}</code></td>
                <td class={trial.speedup == null ? "bad" : ""}>{trial.status.replaceAll("_", " ")}</td>
                <td class="number">{time(trial.time_ns)}</td><td class="number">{ratio(trial.speedup)}</td>
                <td>{trial.proposer}</td>
              </tr>
            ))}
          </tbody>
        </table>
      </div>
    </details>
  );
}

function Card({ title, id, says, wide, children }) {
  return <section class={`card${wide ? " wide" : ""}`} aria-labelledby={id}><h2 id={id}>{title}</h2><p class="soft">{says}</p>{children}</section>;
}

export function RunView({ view }) {
  const winner = useMemo(() => {
    const best = view.trials.filter((trial) => trial.status === "promoted");
    return best.length ? best[best.length - 1].id : null;
  }, [view]);
  const { trials, roof } = view;
  const placed = trials.some((trial) => trial.intensity && trial.rate);
  return (
    <article>
      <h1>{name(view.kernel) || view.run}</h1>
      <p class="soft"><code>{view.kernel}</code>, run <code>{view.run}</code></p>
      <Figures view={view} />
      {trials.length > 0 && (
        <div class="cards">
          <Card title="Speed-up over time" id="c-speed" says="Every right candidate, and the best so far."><SpeedUp trials={trials} /></Card>
          <Card title="Family tree" id="c-tree" says="Who was made from whom: green won, red was wrong or slow."><Family trials={trials} winner={winner} /></Card>
          <Card title="Archive" id="c-archive" says="The fastest of each design."><Archive trials={trials} /></Card>
          {roof && placed && <Card title="Roofline" id="c-roof" says={`Against the limits of ${roof.name}: red is the original, green the winner.`}>
            <Roof trials={trials} roof={roof} winner={winner} /></Card>}
          <Evidence view={view} />
          {view.winner && <Card title="The kernel and its winner" id="c-diff" says="The device code, original first." wide>
            <Diff original={view.original} winner={view.winner} /></Card>}
        </div>
      )}
      <Trials view={view} />
    </article>
  );
}
