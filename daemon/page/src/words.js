// Times, ratios and dates as people read them; the same words as the command line's.
export function time(ns) {
  if (ns == null) return "";
  for (const [limit, unit, scale] of [[1e3, "ns", 1], [1e6, "µs", 1e3], [1e9, "ms", 1e6]])
    if (ns < limit) return `${Number((ns / scale).toPrecision(3))} ${unit}`;
  return `${Number((ns / 1e9).toPrecision(3))} s`;
}

export const ratio = (value) => (value == null ? "" : value < 10 ? `${value.toFixed(2)}x` : `${value.toFixed(1)}x`);
export const name = (path) => path.split("/").pop();
export const when = (unix) => (unix == null ? "" : new Date(unix * 1000).toLocaleString());
const short = new Intl.NumberFormat("en", { notation: "compact", maximumSignificantDigits: 3 });
export const compact = (value) => short.format(value);  // 262K, 10T
export const sentence = (text) => text.charAt(0).toUpperCase() + text.slice(1).replace(/\.?$/, ".");
