// Turning a map of three components: an orthographic view of the points, rotated about the axes of the screen.
const TURN_PER_PIXEL = 0.008; // radians
const FADE = 120; // of 256: how much of their color the farthest points lose
const DEPTH_STEPS = 4096; // points are ordered from far to near in this many steps

// Rotates by drags of this many pixels to the right and down; rows of the matrix are the screen's axes: right, up, towards us.
function turnBy(map, dx, dy) {
  const about = (matrix, from, to, angle) => {
    const cos = Math.cos(angle), sin = Math.sin(angle), turned = matrix.map((row) => row.slice());
    for (let k = 0; k < 3; k++) {
      turned[from][k] = cos * matrix[from][k] + sin * matrix[to][k];
      turned[to][k] = cos * matrix[to][k] - sin * matrix[from][k];
    }
    return turned;
  };
  map.rotation = about(about(map.rotation, 0, 2, dx * TURN_PER_PIXEL), 2, 1, dy * TURN_PER_PIXEL);
  map.place();
}

// The points as seen in the map's rotation, with their depth.
function project({ x, y, z }, [right, up, near], into) {
  for (let i = 0; i < n; i++) {
    const dx = x[i] - 0.5, dy = y[i] - 0.5, dz = z[i] - 0.5;
    into.x[i] = 0.5 + right[0] * dx + right[1] * dy + right[2] * dz;
    into.y[i] = 0.5 + up[0] * dx + up[1] * dy + up[2] * dz;
    into.depth[i] = near[0] * dx + near[1] * dy + near[2] * dz;
  }
}

// The colors of the points, far ones fainter, so that a still picture has depth too.
function shade(map) {
  const { depth } = map.turned, known = map.shades;
  if (known && known.version === map.version && known.colorVersion === colorVersion && known.background === background) return known.colors;
  const shades = known ? known.colors : new Uint32Array(n), paperRedBlue = background & 0xff00ff, paperGreen = background & 0x00ff00;
  for (let i = 0; i < n; i++) {
    const kept = Math.max(256 - FADE, Math.min(256, Math.round(256 - FADE * (0.5 - depth[i])))), rest = 256 - kept;
    const redBlue = ((colors[i] & 0xff00ff) * kept + paperRedBlue * rest) / 256, green = ((colors[i] & 0x00ff00) * kept + paperGreen * rest) / 256;
    shades[i] = (redBlue & 0xff00ff) | (green & 0x00ff00);
  }
  map.shades = { version: map.version, colorVersion, background, colors: shades };
  return shades;
}

// Rows from far to near, by counting: linear in the number of points.
function farToNear(depth) {
  const starts = new Uint32Array(DEPTH_STEPS + 1), steps = new Uint16Array(n), ids = new Uint32Array(n);
  for (let i = 0; i < n; i++) {
    steps[i] = Math.max(0, Math.min(DEPTH_STEPS - 1, Math.floor((depth[i] / 1.8 + 0.5) * DEPTH_STEPS)));
    starts[steps[i] + 1]++;
  }
  for (let step = 0; step < DEPTH_STEPS; step++) starts[step + 1] += starts[step];
  for (let i = 0; i < n; i++) ids[starts[steps[i]]++] = i;
  return ids;
}
