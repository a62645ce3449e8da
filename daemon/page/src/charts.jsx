// The charts of a run; what they show stands in the data of fsr.runs.view.
import { HeatmapChart, LineChart, ScatterChart, TreeChart } from "echarts/charts";
import { AriaComponent, GridComponent, LegendComponent, TooltipComponent, VisualMapComponent } from "echarts/components";
import * as echarts from "echarts/core";
import { SVGRenderer } from "echarts/renderers";
import { useEffect, useRef } from "preact/hooks";
import { compact, ratio, time } from "./words.js";

echarts.use([HeatmapChart, LineChart, ScatterChart, TreeChart, AriaComponent, GridComponent, LegendComponent,
  TooltipComponent, VisualMapComponent, SVGRenderer]);

const dark = matchMedia("(prefers-color-scheme: dark)");
const GOOD = "#1a9a72", BAD = "#c2554a", SOFT = "#8a939d";

function Chart({ label, option }) {
  const place = useRef(null);
  useEffect(() => {
    let chart;
    const draw = () => {
      chart?.dispose();
      chart = echarts.init(place.current, dark.matches ? "dark" : undefined, { renderer: "svg" });
      chart.setOption({ backgroundColor: "transparent", animation: false, ...option });
    };
    draw();
    const sized = new ResizeObserver(() => chart.resize());
    sized.observe(place.current);
    dark.addEventListener("change", draw);
    return () => { sized.disconnect(); dark.removeEventListener("change", draw); chart.dispose(); };
  }, [option]);
  return <div class="chart" ref={place} role="img" aria-label={label} />;
}

const escaped = (text) => echarts.format.encodeHTML(String(text));
const told = (trial) => `${escaped(trial.move)}<br>${escaped(trial.status)} ${time(trial.time_ns)} ${ratio(trial.speedup)}`;

export function SpeedUp({ trials }) {
  const right = trials.filter((trial) => trial.speedup != null);
  let best = 0;
  const line = right.map((trial) => [trial.at_s, (best = Math.max(best, trial.speedup))]);
  const option = {
    tooltip: { formatter: ({ data }) => (data.trial ? told(data.trial) : ratio(data[1])) },
    grid: { left: 50, right: 20, top: 34, bottom: 45 },
    xAxis: { type: "value", name: "seconds", nameLocation: "middle", nameGap: 28 },
    yAxis: { type: "value", name: "speed-up" },
    series: [
      { type: "line", step: "end", data: line, symbol: "none", lineStyle: { color: GOOD, width: 2 } },
      { type: "scatter", symbolSize: 7, itemStyle: { color: SOFT },
        data: right.map((trial) => ({ value: [trial.at_s, trial.speedup], trial })) },
    ],
  };
  return <Chart label={`Speed-up over time: ${right.length} right candidates, the best ${ratio(best)}`} option={option} />;
}

function treeOf(trials, winner) {
  const nodes = new Map(trials.map((trial) => [trial.id, {
    name: trial.id === 0 ? "original" : trial.id === winner ? "winner" : "", trial, children: [],
    itemStyle: { color: trial.id === winner ? GOOD : trial.speedup != null ? SOFT : BAD },
    symbolSize: trial.id === winner ? 14 : 8,
  }]));
  const roots = [];
  for (const trial of trials) (nodes.get(trial.parent)?.children ?? roots).push(nodes.get(trial.id));
  return roots.length === 1 ? roots[0] : { name: "run", children: roots };
}

export function Family({ trials, winner }) {
  const option = {
    tooltip: { formatter: ({ data }) => (data.trial ? told(data.trial) : "") },
    series: [{ type: "tree", data: [treeOf(trials, winner)], left: 20, right: 20, top: 10, bottom: 10, orient: "TB",
      initialTreeDepth: -1, roam: true, symbol: "circle", label: { position: "right", distance: 7 }, expandAndCollapse: false }],
  };
  return <Chart label={`Family tree of ${trials.length} candidates`} option={option} />;
}

export function Archive({ trials }) {
  const cells = new Map();
  for (const trial of trials.filter((one) => one.cell)) {
    const key = trial.cell.slice(0, 2).join();
    const held = cells.get(key);
    if (!held || trial.time_ns < held.time_ns) cells.set(key, trial);
  }
  const found = [...cells.values()];
  const range = (index) => [...new Set(found.map((trial) => trial.cell[index]))].sort((a, b) => a - b);
  const [threads, grid] = [range(0), range(1)];
  const speeds = found.map((trial) => trial.speedup ?? 0);
  const option = {
    tooltip: { formatter: ({ data }) => told(data.trial) },
    grid: { left: 70, right: 20, top: 34, bottom: 80 },
    xAxis: { type: "category", data: threads.map((power) => String(2 ** power)), name: "threads a block",
      nameLocation: "middle", nameGap: 26 },
    yAxis: { type: "category", data: grid.map((power) => `from ${compact(8 ** power)}`), name: "threads in all" },
    visualMap: { min: Math.min(0, ...speeds), max: Math.max(1, ...speeds), orient: "horizontal", left: "center", bottom: 0,
      text: ["faster", ""], dimension: 2, precision: 1 },
    series: [{ type: "heatmap", label: { show: true, formatter: ({ data }) => ratio(data.trial.speedup) },
      data: found.map((trial) => ({
        value: [threads.indexOf(trial.cell[0]), grid.indexOf(trial.cell[1]), trial.speedup ?? 0], trial })) }],
  };
  return <Chart label={`Archive: the fastest candidate of each of ${found.length} designs`} option={option} />;
}

export function Roof({ trials, roof, winner }) {
  const found = trials.filter((trial) => trial.intensity && trial.rate);
  found.sort((a, b) => (a.id === winner) - (b.id === winner)); // over all others
  const xs = found.map((trial) => trial.intensity);
  const ridge = roof.instructions_per_s / roof.bytes_per_s;
  const [first, last] = [Math.min(...xs, ridge) / 3, Math.max(...xs, ridge) * 3];
  const point = (trial) => ({ value: [trial.intensity, trial.rate], trial,
    itemStyle: { color: trial.id === winner ? GOOD : trial.id === 0 ? BAD : SOFT },
    symbolSize: trial.id === winner || trial.id === 0 ? 14 : 7 });
  const ticks = { formatter: compact, showMinLabel: false, showMaxLabel: false }; // the ends are no round numbers
  const option = {
    tooltip: { formatter: ({ data }) => (data.trial ? told(data.trial) : escaped(roof.name)) },
    grid: { left: 60, right: 20, top: 34, bottom: 45 },
    xAxis: { type: "log", min: first, max: last, name: "instructions a byte of memory traffic", nameLocation: "middle",
      nameGap: 28, axisLabel: ticks },
    yAxis: { type: "log", name: "instructions/s", axisLabel: { formatter: compact } },
    series: [
      { type: "line", symbol: "none", lineStyle: { color: GOOD },
        data: [[first, first * roof.bytes_per_s], [ridge, roof.instructions_per_s], [last, roof.instructions_per_s]] },
      { type: "scatter", data: found.map(point) },
    ],
  };
  return <Chart label={`Roofline of ${roof.name} with ${found.length} candidates`} option={option} />;
}
