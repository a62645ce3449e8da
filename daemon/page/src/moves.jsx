// What was done to a kernel, in the order in which it was done; a long one breaks where its parts end.
export function Moves({ moves }) {
  return moves.map((move, index) => <code class="move" key={index}>{move.replace(/[@[,]/g, "$&\u200b")}</code>);
}
