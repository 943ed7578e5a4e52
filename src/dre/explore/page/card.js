// The card of a point: a short one while the pointer is over it; a click pins it, with all columns and its neighbors.
const SHORT_VALUE = 120, LONG_VALUE = 20000; // characters of a value
const SHORT_COLUMNS = 8; // columns on the short card
const CARD_IMAGE = 72, PINNED_IMAGE = 96; // pixels
const EDGE = 12; // pixels from the edge of the map that count as off the screen
let pinnedMap = maps[0]; // where the point was pinned

// Links only to http and https; everything else stays text.
function valueElement(text, limit) {
  const shown = text.length > limit ? `${text.slice(0, limit)}…` : text;
  if (!/^https?:\/\/\S+$/i.test(text)) return document.createTextNode(shown);
  return make("a", { href: text, target: "_blank", rel: "noopener noreferrer" }, shown);
}

function columnList(i, columns, limit) {
  const entry = (column) => [make("dt", { title: column.name }, column.name), make("dd", {}, valueElement(valueOf(column, i), limit))];
  const name = rows.names && headlineOf(i) !== null ? [make("dt", {}, about.namesTitle), make("dd", {}, nameOf(i))] : []; // below a title
  return make("dl", {}, ...name, ...columns.flatMap(entry));
}

// Columns that the head of the card does not show already.
function otherColumns() {
  const title = about.card && about.card.title !== null ? rows.columns[about.card.title] : null;
  return rows.columns.filter((column) => column.values && column !== colorColumn && column !== title);
}

// The image, and beside it the color column with its color; the other columns follow in their order.
function cardTop(i, tall, kept = null) {
  const label = colorColumn ? [
    make("span", { class: "quiet" }, colorColumn.name),
    make("p", { class: "label" }, makeDot(colors[i]), valueOf(colorColumn, i).slice(0, SHORT_VALUE)),
  ] : [];
  if (!about.thumbnails && !label.length && !kept) return null;
  return make("div", { class: "top" }, about.thumbnails ? imageElement(i, tall) : null, make("div", {}, ...label, kept));
}

function showCard(i, map = maps[0]) {
  const card = $("card");
  if (i === hovered && card.hidden === i < 0) return;
  hovered = i;
  card.hidden = i < 0 || i === pinned;
  drawOverlays();
  if (card.hidden) return;
  const columns = otherColumns(), more = columns.length - SHORT_COLUMNS;
  card.replaceChildren(...[
    make("b", {}, titleOf(i)), cardTop(i, CARD_IMAGE), columnList(i, columns.slice(0, SHORT_COLUMNS), SHORT_VALUE),
    more > 0 ? make("p", { class: "quiet" }, `${plural(more, "more column")}: click to pin`) : null,
  ].filter(Boolean));
  placeCard(card, map.toPage(i));
}

// Beside a spot of the area of the maps, inside of it.
function placeCard(card, [px, py]) {
  const { width, height } = card.getBoundingClientRect(), area = $("map");
  card.style.left = `${Math.max(6, px + 16 + width > area.clientWidth ? px - width - 16 : px + 16)}px`;
  card.style.top = `${Math.max(6, Math.min(area.clientHeight - height - 6, py - height / 2))}px`;
}

// Pins the card of a row; −1 closes it.
function pinCard(i, map = maps[0]) {
  showCard(-1, map);
  for (const layer of layers) layer.release();
  pinned = i;
  pinnedMap = map;
  walk.list = null;
  showPinned();
  stateChanged();
}

// Shows the pinned card anew: after a pin, another color, another stage or when neighbors have arrived.
function showPinned() {
  const card = $("pinned"), i = pinned, hadFocus = card.contains(document.activeElement);
  card.hidden = i < 0;
  neighborsShown = null;
  if (!maps.includes(pinnedMap)) pinnedMap = maps[0]; // the map beside may be gone
  if (i >= 0) {
    const close = makeButton({ class: "close", "aria-label": "Close the card", title: "Close (Escape)" }, "×");
    const found = neighborsOf(i, pinnedMap);
    neighborsShown = { map: found.map, data: found.data || [] };
    const scrolled = make(
      "div", { class: "body", role: "group", tabindex: "0", "aria-label": "Values of the pinned point" },
      cardTop(i, PINNED_IMAGE, keptLine(found)), columnList(i, otherColumns(), LONG_VALUE),
      neighborLists(found, (j) => pinCard(j, pinnedMap)),
    );
    card.replaceChildren(make("header", {}, make("b", {}, titleOf(i)), onClick(close, closeCard)), scrolled);
    dockCard(card, pinnedMap, (map) => map.toScreen(i));
    announce(`Pinned ${rowLabel(i)}. ${[keptText(found), meanText(found)].filter(Boolean).join("; ")}`);
    if (hadFocus) close.focus();
  }
  followPinned();
  redraw();
}

function closeCard() {
  pinCard(-1);
  maps[0].canvas.focus({ preventScroll: true });
}

function keptLine(found) {
  const title = "How many of the nearest rows in the data are among the nearest points of the map";
  if (!found.data) return null;
  const look = `--share: ${found.kept / found.k}; --mean: ${(found.mean || 0) / found.k}`;
  const bar = make("span", { class: "share", style: look, "aria-hidden": "true" });
  return make("p", { class: "kept", title }, bar, keptText(found), make("span", { class: "mean" }, meanText(found)));
}

const stageWatchers = []; // called when a stage is reached

// In another stage other points are near on the map.
function stageArrived() {
  for (const watch of stageWatchers) watch();
  if (pinned >= 0) showPinned();
}

// How many maps show a spot below the card.
function hiddenBy(card, spotOn) {
  const box = card.getBoundingClientRect(), area = $("map").getBoundingClientRect();
  return maps.filter((map) => {
    const [px, py] = map.toArea(spotOn(map));
    return px + area.left > box.left && px + area.left < box.right && py + area.top > box.top && py + area.top < box.bottom;
  }).length;
}

// At the right edge of the maps, or at the left if that hides fewer points. A point that is hidden or off the screen moves into sight.
function dockCard(card, shown, spotOn) {
  const [right, left] = [false, true].map((side) => {
    card.classList.toggle("left", side);
    return hiddenBy(card, spotOn);
  });
  card.classList.toggle("left", left < right);
  const [px, py] = spotOn(shown), { width, height } = shown.view;
  const isSheet = card.offsetWidth >= $("map").clientWidth; // on a phone
  const free = Math.min(height, card.getBoundingClientRect().top - shown.element.getBoundingClientRect().top); // above it
  if (!shown.isOnScreen(px, py, -EDGE)) shown.panBy(width / 2 - px, (isSheet ? free : height) / 2 - py);
  else if (isSheet && py > free) shown.panBy(0, free / 2 - py);
}

// N and B walk through the neighbors of the row that was pinned last by hand, and back to it.
const walk = { list: null, at: 0 };

function walkNeighbors(step) {
  if (pinned < 0) return;
  if (!walk.list) {
    const { data, map } = neighborsOf(pinned, pinnedMap);
    walk.list = [pinned, ...(data || map)];
    walk.at = 0;
  }
  const { list } = walk, at = Math.max(0, Math.min(list.length - 1, walk.at + step));
  pinCard(list[at], pinnedMap);
  walk.list = list;
  walk.at = at;
}
