// The card of a new row: its columns, its image and the nearest points of the map; short under the pointer, whole when pinned.
const newPin = make("section", { id: "new-pinned", "aria-label": "Pinned new row", hidden: true });
$("map").append(newPin);
let newPinnedMap = maps[0];

const newPlace = (k) => [newRows.x[k], newRows.y[k], newRows.z ? newRows.z[k] : 0];
const newNeighbors = (k) => nearestTo(stages[lastStage()], newPlace(k), Math.min(n, MAP_NEIGHBORS));

function newValueList(k, limit, length) {
  const values = newValues(k).slice(0, limit);
  return make("dl", {}, ...values.flatMap(([name, value]) => [make("dt", { title: name }, name), make("dd", {}, valueElement(value || "–", length))]));
}

// The image at the size in which the model has read it; null for rows of a table.
function newImage(k, tall) {
  const { images } = batches[newRows.batch[k]];
  if (!images) return null;
  const { width, height } = about.model.image, canvas = make("canvas", { width, height, class: "new-image", style: `height: ${tall}px` });
  canvas.getContext("2d").putImageData(new ImageData(images[newRows.line[k]], width, height), 0, 0);
  return canvas;
}

function showNewCard(k, map) {
  const card = $("card");
  if (k === newHovered) return;
  newHovered = k;
  drawOverlays();
  if (k < 0 || k === newPinned) {
    card.hidden = true;
    return;
  }
  const more = newValues(k).length - SHORT_COLUMNS;
  card.replaceChildren(...[
    make("b", {}, newTitle(k)), make("p", { class: "quiet" }, "new row"), newImage(k, CARD_IMAGE), newValueList(k, SHORT_COLUMNS, SHORT_VALUE),
    more > 0 ? make("p", { class: "quiet" }, `${plural(more, "more column")}: click to pin`) : null,
  ].filter(Boolean));
  card.hidden = false;
  placeCard(card, map.toArea(newSpot(map, k)));
}

// What most of the nearest points are, by the column that colors them.
function newMajority(near) {
  if (!colorColumn || colorColumn.kind !== "class") return null;
  const counts = new Map();
  for (const i of near) counts.set(valueOf(colorColumn, i), (counts.get(valueOf(colorColumn, i)) || 0) + 1);
  const [[value, count]] = [...counts].sort((a, b) => b[1] - a[1]);
  return `${count === near.length ? `All ${count}` : `${count} of the ${near.length}`} nearest: ${value}`;
}

// Pins the card of a new row; −1 closes it.
function pinNewRow(k, map = maps[0]) {
  if (k >= 0) pinCard(-1, map);
  showNewCard(-1, map);
  newPinned = k;
  newPinnedMap = map;
  showNewPinned();
  redraw();
}

function showNewPinned() {
  const k = newPinned, hadFocus = newPin.contains(document.activeElement);
  newPin.hidden = k < 0;
  if (k < 0) return;
  const close = makeButton({ class: "close", "aria-label": "Close the card", title: "Close (Escape)" }, "×"), near = newNeighbors(k);
  const place = newRows.original.map((values, axis) => `dre${axis + 1} ${Number(values[k].toPrecision(4))}`).join(", "), most = newMajority(near);
  const items = near.map((i) => make("li", {}, neighborButton(i, false, (j) => pinCard(j, newPinnedMap))));
  newPin.replaceChildren(
    make("header", {}, make("b", {}, newTitle(k)), onClick(close, () => { pinNewRow(-1); maps[0].canvas.focus({ preventScroll: true }); })),
    make("div", { class: "body", role: "group", tabindex: "0", "aria-label": "Values of the new row" },
      make("div", { class: "top" }, newImage(k, PINNED_IMAGE), make("div", {}, make("span", { class: "quiet" }, `new row, ${place}`), most ? make("p", { class: "label" }, most) : null)),
      newValueList(k, Infinity, LONG_VALUE),
      make("section", { class: "neighbors", "aria-label": "Nearest points on the map" }, make("h3", {}, "Nearest on the map"),
        make("div", { class: about.thumbnails ? "images" : "one" }, make("ol", {}, ...items)))),
  );
  dockCard(newPin, newPinnedMap, (map) => newSpot(map, k));
  announce(`Pinned the new row ${newTitle(k)}. ${most || ""}`);
  if (hadFocus) close.focus();
}
