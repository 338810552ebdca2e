// The scenario `live` in the size of 200 charts on a screen.
import live from './live.js';

export default () => live([300, 100]);
