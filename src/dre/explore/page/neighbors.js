// The nearest neighbors of a point: on the map, where they are computed, and in the data, where the page brings them.
const MAP_NEIGHBORS = 10;
let dataNeighbors = null; // { k, ids }, once decoded

const nearestOnMap = ({ x, y, z }, i, k) => nearestTo({ x, y, z }, [x[i], y[i], z ? z[i] : 0], k, i);

// Rows nearest to a place, nearest first, without row i; one pass that keeps the k best.
function nearestTo({ x, y, z }, [px, py, pz], k, i = -1) {
  const ids = [], distances = [];
  let worst = Infinity;
  for (let j = 0; j < n; j++) {
    const dx = x[j] - px, dy = y[j] - py, dz = z ? z[j] - pz : 0, distance = dx * dx + dy * dy + dz * dz;
    if (distance >= worst || j === i) continue;
    let at = Math.min(ids.length, k - 1);
    while (at > 0 && distances[at - 1] > distance) {
      ids[at] = ids[at - 1];
      distances[at] = distances[at - 1];
      at--;
    }
    ids[at] = j;
    distances[at] = distance;
    if (ids.length === k) worst = distances[k - 1];
  }
  return ids;
}

// Neighbors of a row in a map and in the data (null if the page has none), and how many of the data's the map keeps.
function neighborsOf(i, map) {
  const k = Math.min(n - 1, dataNeighbors ? dataNeighbors.k : MAP_NEIGHBORS);
  const onMap = nearestOnMap(map.coordinates, i, k);
  const inData = dataNeighbors ? Array.from(dataNeighbors.ids.subarray(i * dataNeighbors.k, i * dataNeighbors.k + k)) : null;
  const near = new Set(onMap), kept = inData ? inData.filter((j) => near.has(j)).length : null;
  return { map: onMap, data: inData, kept, k, mean: meanKept(map) };
}

// How many neighbors a map keeps on average at its stage.
function meanKept(map) {
  const [source, stage] = map === maps[0] ? [0, currentStage()] : beside;
  return about.maps[source].stages[stage].kept;
}

// How many of the data's neighbors the map keeps, in words, and a scale for it: of noisy rows even a good map keeps few.
const keptText = ({ data, kept, k }) => (data ? `${kept} of ${k} neighbors kept` : "");
const meanText = ({ data, mean }) => (data && mean !== null ? `${mean.toFixed(1)} on average in this map` : "");

// Both lists side by side, or as rows of images; neighbors that are in both are marked.
function neighborLists({ map, data }, pin) {
  if (!map.length) return null;
  const lists = data ? [["In the data", data, new Set(map)], ["On the map", map, new Set(data)]] : [["On the map", map, new Set()]];
  const layout = about.thumbnails ? "images" : data ? "two" : "one";
  const alone = makeButton({ class: "link", title: "Highlight only this point and its neighbors" }, "Show only these");
  const items = (ids, other) => ids.map((j) => make("li", {}, neighborButton(j, other.has(j), pin)));
  return make(
    "section", { class: "neighbors", "aria-label": "Nearest neighbors" },
    make("h3", {}, "Nearest neighbors", onClick(alone, filterNeighbors)),
    make("div", { class: layout }, ...lists.map(([heading, ids, other]) =>
      make("div", {}, make("h4", {}, nearMark(heading), heading), make("ol", {}, ...items(ids, other))))),
  );
}

// The pinned point and its neighbors as a filter, for the table and the export.
function filterNeighbors() {
  const mask = new Uint8Array(n);
  for (const i of [pinned, ...neighborsShown.map, ...neighborsShown.data]) mask[i] = 1;
  setFilter("neighbors", { mask, label: `neighbors of ${titleOf(pinned)}` });
}

// The mark that such neighbors have on the map.
function nearMark(heading) {
  const circle = makeSvg("circle", { class: "map-mark", cx: 6, cy: 6, r: 4.5 });
  const square = makeSvg("rect", { class: "data-mark", x: 1.5, y: 1.5, width: 9, height: 9 });
  return makeSvg("svg", { class: "mark", viewBox: "0 0 12 12", "aria-hidden": "true" }, heading === "On the map" ? circle : square);
}

function neighborButton(j, isShared, pin) {
  const label = isShared ? `${rowLabel(j)}: near on the map and in the data` : rowLabel(j);
  const text = rows.names || headlineOf(j) !== null || !colorColumn ? titleOf(j) : `${valueOf(colorColumn, j)} · ${nameOf(j)}`;
  const shown = about.thumbnails
    ? [imageElement(j, 26)]
    : [makeDot(colors[j]), make("span", { class: "name" }, text), isShared ? make("span", { class: "both" }, "✓") : null];
  const look = { class: isShared ? "shared" : null, style: `--color: ${cssColor(colors[j])}` };
  const button = makeButton({ ...look, title: label, "aria-label": label }, ...shown);
  button.addEventListener("pointerenter", () => ringAround(j));
  button.addEventListener("pointerleave", () => ringAround(-1));
  return onClick(button, () => pin(j));
}

const rowLabel = (i) => [titleOf(i), ...(colorColumn ? [valueOf(colorColumn, i)] : [])].join(" · ");

// A ring on the maps without a card, for rows in lists.
function ringAround(i) {
  hovered = i;
  drawOverlays();
}
