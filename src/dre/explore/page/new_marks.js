// The marks of new rows on the maps: diamonds above all points and below the names of classes, which can be pointed at and pinned.
const MARK = 6; // half of a mark, pixels
const MOVING_MARKS = 3000; // that are drawn while a map moves
const MANY_MARKS = 2000; // from which on they are smaller, and without an outline
const FAINT = 0.6; // opacity of many marks
const sprites = new Map(); // by size, resolution and theme

function diamond(ink, center, reach) {
  ink.beginPath();
  ink.moveTo(center, center - reach);
  ink.lineTo(center + reach, center);
  ink.lineTo(center, center + reach);
  ink.lineTo(center - reach, center);
  ink.closePath();
}

// The mark as a picture: drawing one many times is quick.
function markSprite(reach, ratio) {
  const look = ["--new", "--ink", "--paper"].map(cssVariable), key = [reach, ratio, ...look].join();
  if (!sprites.has(key)) {
    const canvas = document.createElement("canvas"), center = (reach + 4) * ratio, ink = canvas.getContext("2d");
    canvas.width = canvas.height = Math.ceil(2 * center);
    const outlined = [[reach + 3, look[2]], [reach + 1.2, look[1]], [reach - 0.8, look[0]]];
    ink.globalAlpha = reach < MARK ? FAINT : 1;
    for (const [size, color] of reach < MARK ? outlined.slice(2) : outlined) {
      diamond(ink, center, size * ratio);
      ink.fillStyle = color;
      ink.fill();
    }
    sprites.set(key, canvas);
  }
  return sprites.get(key);
}

const markReach = () => (newRows.count > MANY_MARKS ? MARK / 2 : MARK);

function drawNewRows(map) {
  if (!showsNewRows(map)) return;
  const { ink, view } = map, { x, y } = newPlaces(map), reach = markReach(), sprite = markSprite(reach, view.ratio), half = reach + 4;
  const step = isMoving ? Math.ceil(newRows.count / MOVING_MARKS) : 1;
  if (newPinned >= 0) drawNewNeighbors(map);
  for (let k = 0; k < newRows.count; k += step) {
    const px = map.toScreenX(x[k]), py = map.toScreenY(y[k]);
    if (map.isOnScreen(px, py, half)) ink.drawImage(sprite, px - half, py - half, sprite.width / view.ratio, sprite.height / view.ratio);
  }
  for (const k of [newHovered, newPinned]) if (k >= 0) ringAroundNew(map, k);
}

function ringAroundNew(map, k) {
  const { ink } = map, [px, py] = newSpot(map, k), reach = markReach() + (k === newPinned ? 6 : 4);
  for (const [width, color] of [[5, "--paper"], [2.5, "--ink"]]) {
    ink.beginPath();
    ink.arc(px, py, reach, 0, 2 * Math.PI);
    ink.lineWidth = width;
    ink.strokeStyle = cssVariable(color);
    ink.stroke();
  }
}

// Thin lines to the nearest points of the map, with circles around them.
function drawNewNeighbors(map) {
  const { ink } = map, [px, py] = newSpot(map, newPinned);
  ink.strokeStyle = cssVariable(NEAR.map);
  for (const i of newNeighbors(newPinned)) {
    const [qx, qy] = map.toScreen(i);
    ink.lineWidth = 1;
    ink.beginPath();
    ink.moveTo(px, py);
    ink.lineTo(qx, qy);
    ink.stroke();
    ink.lineWidth = 2;
    ink.beginPath();
    ink.arc(qx, qy, map.look.radius + 3, 0, 2 * Math.PI);
    ink.stroke();
  }
}

// The new row under the pointer, or −1.
function newRowUnder(map, event) {
  if (!showsNewRows(map)) return -1;
  const [cx, cy] = map.locate(event), { x, y } = newPlaces(map);
  let found = -1, least = Math.max(REACH[event.pointerType] || REACH.mouse, markReach() + 2);
  for (let k = 0; k < newRows.count; k++) {
    const distance = Math.hypot(map.toScreenX(x[k]) - cx, map.toScreenY(y[k]) - cy);
    if (distance > least) continue;
    [found, least] = [k, distance];
  }
  return found;
}

layers.push({
  draw: drawNewRows,
  hover(map, event) {
    const k = newRowUnder(map, event);
    if (k >= 0) showCard(-1, map);
    showNewCard(k, map);
    return k >= 0;
  },
  press(map, event) {
    const k = newRowUnder(map, event);
    if (k >= 0) pinNewRow(k, map);
    return k >= 0;
  },
  release() {
    if (newPinned < 0) return false;
    pinNewRow(-1);
    return true;
  },
  widen: widenByNew,
  note: () => (newRows.count ? newCount() : ""),
});
