/* SPDX-License-Identifier: Apache-2.0 */
/* Figures of MXNet's networks, found by building each of them in MXNet 1.9. Transformers:
 * parameters as published with GPT-2's weights and by PyTorch's libraries; multiply-adds by hand.
 */
#include "zoo_table.h"

/* clang-format off */
const struct zoo_row zoo_rows[] = {
	{"alexnet", 0, {3, 224, 224}, 1000, 50844008, 16, 0, 1009945728},
	{"googlenet", 0, {3, 224, 224}, 1000, 6998552, 116, 0, 1431556352},
	{"gpt2", 0, {1, 1024, 1}, 50257, 124439808, 148, 0, 126496800768 + 9673113600},
	{"gpt2-1558m", 0, {1, 1024, 1}, 50257, 1557611200, 580, 0,
	 1592290508800 + 48L * 1600 * 1024 * 1025},
	{"gpt2-355m", 0, {1, 1024, 1}, 50257, 354823168, 292, 0,
	 361935929344 + 24L * 1024 * 1024 * 1025},
	{"gpt2-774m", 0, {1, 1024, 1}, 50257, 774030080, 436, 0,
	 790648586240 + 36L * 1280 * 1024 * 1025},
	{"inception-bn", 0, {3, 224, 224}, 1000, 11295240, 278, 20032, 1987204096},
	{"inception-bn", 0, {3, 28, 28}, 10, 1652826, 78, 3424, 204219680},
	{"inception-v3", 0, {3, 299, 299}, 1000, 23834568, 284, 34432, 5713216096},
	{"lenet", 0, {1, 28, 28}, 10, 431080, 8, 0, 2293000},
	/* by hand: 20 x 5^3, 50 x 20 x 5^3, 500 x 50 x 4^3, 10 x 500 */
	{"lenet", 0, {1, 28, 28, 28}, 10, 2520 + 125050 + 1600500 + 5010, 8, 0,
	 2500 * 13824. + 125000 * 512. + 1600000 + 5000},
	{"lstm", 0, {1, 32, 1}, 10000, 15955600, 35, 0, 445440000},
	{"lstm", 0, {1, 1, 1}, 10001, 15956201, 35, 0, 13920400},
	{"lstm", 2, {1, 60, 1}, 67, 2286667, 11, 0, 136008000},
	{"llama", 0, {1, 256, 1}, 32000, 8995968, 31, 0, 1254096896 + 4L * 128 * 256 * 257},
	{"mlp", 0, {1, 28, 28}, 10, 109386, 6, 0, 109184},
	{"mobilenet", 0, {3, 224, 224}, 1000, 4231976, 83, 21888, 568740352},
	{"mobilenet-0.25", 0, {3, 224, 224}, 1000, 470072, 83, 5472, 41030272},
	{"mobilenet-0.5", 0, {3, 224, 224}, 1000, 1331592, 83, 10944, 149497088},
	{"mobilenet-0.75", 0, {3, 224, 224}, 1000, 2585560, 83, 16416, 325400448},
	{"resnet", 1001, {3, 28, 28}, 10, 10327712, 3007, 149222, 1141544192},
	{"resnet", 101, {3, 224, 224}, 1000, 44541614, 310, 97798, 7801405440},
	{"resnet", 110, {3, 28, 28}, 10, 1730784, 334, 8102, 194018688},
	{"resnet", 14, {3, 28, 28}, 10, 175328, 46, 934, 20610432},
	{"resnet", 152, {3, 224, 224}, 1000, 60185262, 463, 143878, 11513626624},
	{"resnet", 164, {3, 28, 28}, 10, 1703264, 496, 24230, 189605120},
	{"resnet", 18, {3, 32, 32}, 10, 11176272, 59, 7814, 559617024},
	{"resnet", 18, {3, 224, 224}, 1000, 11691950, 61, 7942, 1826918400},
	{"resnet", 200, {3, 224, 224}, 1000, 64666286, 607, 168454, 15007481856},
	{"resnet", 20, {3, 28, 28}, 10, 272544, 64, 1382, 31448448},
	{"resnet", 269, {3, 224, 224}, 1000, 102065838, 814, 245254, 20029898752},
	{"resnet", 26, {3, 28, 28}, 10, 369760, 82, 1830, 42286464},
	{"resnet", 272, {3, 28, 28}, 10, 2816096, 820, 40358, 312435968},
	{"resnet", 32, {3, 28, 28}, 10, 466976, 100, 2278, 53124480},
	{"resnet", 34, {3, 224, 224}, 1000, 21800110, 109, 15366, 3676606464},
	{"resnet", 38, {3, 28, 28}, 10, 564192, 118, 2726, 63962496},
	{"resnet", 44, {3, 28, 28}, 10, 661408, 136, 3174, 74800512},
	{"resnet", 50, {3, 32, 32}, 10, 23513168, 155, 45446, 1297829888},
	{"resnet", 50, {3, 28, 28}, 10, 758624, 154, 3622, 85638528},
	{"resnet", 50, {3, 224, 224}, 1000, 25549486, 157, 45574, 4089184256},
	{"resnet", 56, {3, 28, 28}, 10, 855840, 172, 4070, 96476544},
	{"resnet", 8, {3, 28, 28}, 10, 78112, 28, 486, 9772416},
	{"resnet-v1", 1001, {3, 28, 28}, 10, 10328602, 3011, 150112, 1139135744},
	{"resnet-v1", 101, {3, 224, 224}, 1000, 44549160, 314, 105344, 7570194432},
	{"resnet-v1", 110, {3, 28, 28}, 10, 1731002, 338, 8320, 194018688},
	{"resnet-v1", 14, {3, 28, 28}, 10, 175546, 50, 1152, 20610432},
	{"resnet-v1", 152, {3, 224, 224}, 1000, 60192808, 467, 151424, 11282415616},
	{"resnet-v1", 164, {3, 28, 28}, 10, 1704154, 500, 25120, 187196672},
	{"resnet-v1", 18, {3, 224, 224}, 1000, 11693736, 65, 9728, 1826918400},
	{"resnet-v1", 200, {3, 224, 224}, 1000, 64673832, 611, 176000, 14776270848},
	{"resnet-v1", 20, {3, 28, 28}, 10, 272762, 68, 1600, 31448448},
	{"resnet-v1", 269, {3, 224, 224}, 1000, 102073384, 818, 252800, 19798687744},
	{"resnet-v1", 26, {3, 28, 28}, 10, 369978, 86, 2048, 42286464},
	{"resnet-v1", 272, {3, 28, 28}, 10, 2816986, 824, 41248, 310027520},
	{"resnet-v1", 32, {3, 28, 28}, 10, 467194, 104, 2496, 53124480},
	{"resnet-v1", 34, {3, 224, 224}, 1000, 21801896, 113, 17152, 3676606464},
	{"resnet-v1", 38, {3, 28, 28}, 10, 564410, 122, 2944, 63962496},
	{"resnet-v1", 44, {3, 28, 28}, 10, 661626, 140, 3392, 74800512},
	{"resnet-v1", 50, {3, 28, 28}, 10, 758842, 158, 3840, 85638528},
	{"resnet-v1", 50, {3, 224, 224}, 1000, 25557032, 161, 53120, 3857973248},
	{"resnet-v1", 56, {3, 28, 28}, 10, 856058, 176, 4288, 96476544},
	{"resnet-v1", 8, {3, 28, 28}, 10, 78330, 32, 704, 9772416},
	{"resnext", 101, {3, 224, 224}, 1000, 44177710, 316, 137862, 7969996800},
	{"resnext", 152, {3, 224, 224}, 1000, 59951406, 469, 199302, 11709513728},
	{"resnext", 50, {3, 224, 224}, 1000, 25028910, 163, 68230, 4230479872},
	{"vgg", 11, {3, 224, 224}, 1000, 132863336, 22, 0, 7609090048},
	{"vgg-bn", 11, {3, 224, 224}, 1000, 132868840, 38, 5504, 7609090048},
	{"vgg", 13, {3, 224, 224}, 1000, 133047848, 26, 0, 11308466176},
	{"vgg-bn", 13, {3, 224, 224}, 1000, 133053736, 46, 5888, 11308466176},
	{"vgg", 16, {3, 224, 224}, 1000, 138357544, 32, 0, 15470264320},
	{"vgg-bn", 16, {3, 224, 224}, 1000, 138365992, 58, 8448, 15470264320},
	{"vgg", 19, {3, 224, 224}, 1000, 143667240, 38, 0, 19632062464},
	{"vgg-bn", 19, {3, 224, 224}, 1000, 143678248, 70, 11008, 19632062464},
	{"vit-base", 0, {3, 224, 224}, 1000, 86567656, 152, 0, 17563828224},
	{"vit-small", 0, {3, 224, 224}, 1000, 22050664, 152, 0, 4598882304},
	{"vit-tiny", 0, {3, 224, 224}, 1000, 5717416, 152, 0, 1253683200},
};
/* clang-format on */

const size_t zoo_n_rows = sizeof zoo_rows / sizeof *zoo_rows;

static const char resnet_20[] =
	"bn_data_gamma bn_data_beta conv0_weight stage1_unit1_bn1_gamma "
	"stage1_unit1_bn1_beta stage1_unit1_conv1_weight stage1_unit1_bn2_gamma "
	"stage1_unit1_bn2_beta stage1_unit1_conv2_weight stage1_unit1_sc_weight "
	"stage1_unit2_bn1_gamma stage1_unit2_bn1_beta stage1_unit2_conv1_weight "
	"stage1_unit2_bn2_gamma stage1_unit2_bn2_beta stage1_unit2_conv2_weight "
	"stage1_unit3_bn1_gamma stage1_unit3_bn1_beta stage1_unit3_conv1_weight "
	"stage1_unit3_bn2_gamma stage1_unit3_bn2_beta stage1_unit3_conv2_weight "
	"stage2_unit1_bn1_gamma stage2_unit1_bn1_beta stage2_unit1_conv1_weight "
	"stage2_unit1_bn2_gamma stage2_unit1_bn2_beta stage2_unit1_conv2_weight "
	"stage2_unit1_sc_weight stage2_unit2_bn1_gamma stage2_unit2_bn1_beta "
	"stage2_unit2_conv1_weight stage2_unit2_bn2_gamma stage2_unit2_bn2_beta "
	"stage2_unit2_conv2_weight stage2_unit3_bn1_gamma stage2_unit3_bn1_beta "
	"stage2_unit3_conv1_weight stage2_unit3_bn2_gamma stage2_unit3_bn2_beta "
	"stage2_unit3_conv2_weight stage3_unit1_bn1_gamma stage3_unit1_bn1_beta "
	"stage3_unit1_conv1_weight stage3_unit1_bn2_gamma stage3_unit1_bn2_beta "
	"stage3_unit1_conv2_weight stage3_unit1_sc_weight stage3_unit2_bn1_gamma "
	"stage3_unit2_bn1_beta stage3_unit2_conv1_weight stage3_unit2_bn2_gamma "
	"stage3_unit2_bn2_beta stage3_unit2_conv2_weight stage3_unit3_bn1_gamma "
	"stage3_unit3_bn1_beta stage3_unit3_conv1_weight stage3_unit3_bn2_gamma "
	"stage3_unit3_bn2_beta stage3_unit3_conv2_weight bn1_gamma bn1_beta fc1_weight "
	"fc1_bias bn_data_moving_mean bn_data_moving_var stage1_unit1_bn1_moving_mean "
	"stage1_unit1_bn1_moving_var stage1_unit1_bn2_moving_mean "
	"stage1_unit1_bn2_moving_var stage1_unit2_bn1_moving_mean "
	"stage1_unit2_bn1_moving_var stage1_unit2_bn2_moving_mean "
	"stage1_unit2_bn2_moving_var stage1_unit3_bn1_moving_mean "
	"stage1_unit3_bn1_moving_var stage1_unit3_bn2_moving_mean "
	"stage1_unit3_bn2_moving_var stage2_unit1_bn1_moving_mean "
	"stage2_unit1_bn1_moving_var stage2_unit1_bn2_moving_mean "
	"stage2_unit1_bn2_moving_var stage2_unit2_bn1_moving_mean "
	"stage2_unit2_bn1_moving_var stage2_unit2_bn2_moving_mean "
	"stage2_unit2_bn2_moving_var stage2_unit3_bn1_moving_mean "
	"stage2_unit3_bn1_moving_var stage2_unit3_bn2_moving_mean "
	"stage2_unit3_bn2_moving_var stage3_unit1_bn1_moving_mean "
	"stage3_unit1_bn1_moving_var stage3_unit1_bn2_moving_mean "
	"stage3_unit1_bn2_moving_var stage3_unit2_bn1_moving_mean "
	"stage3_unit2_bn1_moving_var stage3_unit2_bn2_moving_mean "
	"stage3_unit2_bn2_moving_var stage3_unit3_bn1_moving_mean "
	"stage3_unit3_bn1_moving_var stage3_unit3_bn2_moving_mean "
	"stage3_unit3_bn2_moving_var bn1_moving_mean bn1_moving_var ";
static const char resnet_v1_20[] =
	"conv0_weight bn0_gamma bn0_beta stage1_unit1_conv1_weight "
	"stage1_unit1_bn1_gamma stage1_unit1_bn1_beta stage1_unit1_conv2_weight "
	"stage1_unit1_bn2_gamma stage1_unit1_bn2_beta stage1_unit1_conv1sc_weight "
	"stage1_unit1_sc_gamma stage1_unit1_sc_beta stage1_unit2_conv1_weight "
	"stage1_unit2_bn1_gamma stage1_unit2_bn1_beta stage1_unit2_conv2_weight "
	"stage1_unit2_bn2_gamma stage1_unit2_bn2_beta stage1_unit3_conv1_weight "
	"stage1_unit3_bn1_gamma stage1_unit3_bn1_beta stage1_unit3_conv2_weight "
	"stage1_unit3_bn2_gamma stage1_unit3_bn2_beta stage2_unit1_conv1_weight "
	"stage2_unit1_bn1_gamma stage2_unit1_bn1_beta stage2_unit1_conv2_weight "
	"stage2_unit1_bn2_gamma stage2_unit1_bn2_beta stage2_unit1_conv1sc_weight "
	"stage2_unit1_sc_gamma stage2_unit1_sc_beta stage2_unit2_conv1_weight "
	"stage2_unit2_bn1_gamma stage2_unit2_bn1_beta stage2_unit2_conv2_weight "
	"stage2_unit2_bn2_gamma stage2_unit2_bn2_beta stage2_unit3_conv1_weight "
	"stage2_unit3_bn1_gamma stage2_unit3_bn1_beta stage2_unit3_conv2_weight "
	"stage2_unit3_bn2_gamma stage2_unit3_bn2_beta stage3_unit1_conv1_weight "
	"stage3_unit1_bn1_gamma stage3_unit1_bn1_beta stage3_unit1_conv2_weight "
	"stage3_unit1_bn2_gamma stage3_unit1_bn2_beta stage3_unit1_conv1sc_weight "
	"stage3_unit1_sc_gamma stage3_unit1_sc_beta stage3_unit2_conv1_weight "
	"stage3_unit2_bn1_gamma stage3_unit2_bn1_beta stage3_unit2_conv2_weight "
	"stage3_unit2_bn2_gamma stage3_unit2_bn2_beta stage3_unit3_conv1_weight "
	"stage3_unit3_bn1_gamma stage3_unit3_bn1_beta stage3_unit3_conv2_weight "
	"stage3_unit3_bn2_gamma stage3_unit3_bn2_beta fc1_weight fc1_bias "
	"bn0_moving_mean bn0_moving_var stage1_unit1_bn1_moving_mean "
	"stage1_unit1_bn1_moving_var stage1_unit1_bn2_moving_mean "
	"stage1_unit1_bn2_moving_var stage1_unit1_sc_moving_mean "
	"stage1_unit1_sc_moving_var stage1_unit2_bn1_moving_mean "
	"stage1_unit2_bn1_moving_var stage1_unit2_bn2_moving_mean "
	"stage1_unit2_bn2_moving_var stage1_unit3_bn1_moving_mean "
	"stage1_unit3_bn1_moving_var stage1_unit3_bn2_moving_mean "
	"stage1_unit3_bn2_moving_var stage2_unit1_bn1_moving_mean "
	"stage2_unit1_bn1_moving_var stage2_unit1_bn2_moving_mean "
	"stage2_unit1_bn2_moving_var stage2_unit1_sc_moving_mean "
	"stage2_unit1_sc_moving_var stage2_unit2_bn1_moving_mean "
	"stage2_unit2_bn1_moving_var stage2_unit2_bn2_moving_mean "
	"stage2_unit2_bn2_moving_var stage2_unit3_bn1_moving_mean "
	"stage2_unit3_bn1_moving_var stage2_unit3_bn2_moving_mean "
	"stage2_unit3_bn2_moving_var stage3_unit1_bn1_moving_mean "
	"stage3_unit1_bn1_moving_var stage3_unit1_bn2_moving_mean "
	"stage3_unit1_bn2_moving_var stage3_unit1_sc_moving_mean "
	"stage3_unit1_sc_moving_var stage3_unit2_bn1_moving_mean "
	"stage3_unit2_bn1_moving_var stage3_unit2_bn2_moving_mean "
	"stage3_unit2_bn2_moving_var stage3_unit3_bn1_moving_mean "
	"stage3_unit3_bn1_moving_var stage3_unit3_bn2_moving_mean "
	"stage3_unit3_bn2_moving_var ";
static const char inception_bn_small[] =
	"conv_1_weight conv_1_bias bn_1_gamma bn_1_beta conv_in3a_1x1_weight "
	"conv_in3a_1x1_bias bn_in3a_1x1_gamma bn_in3a_1x1_beta conv_in3a_3x3_weight "
	"conv_in3a_3x3_bias bn_in3a_3x3_gamma bn_in3a_3x3_beta conv_in3b_1x1_weight "
	"conv_in3b_1x1_bias bn_in3b_1x1_gamma bn_in3b_1x1_beta conv_in3b_3x3_weight "
	"conv_in3b_3x3_bias bn_in3b_3x3_gamma bn_in3b_3x3_beta conv_in3c_conv_weight "
	"conv_in3c_conv_bias bn_in3c_conv_gamma bn_in3c_conv_beta conv_in4a_1x1_weight "
	"conv_in4a_1x1_bias bn_in4a_1x1_gamma bn_in4a_1x1_beta conv_in4a_3x3_weight "
	"conv_in4a_3x3_bias bn_in4a_3x3_gamma bn_in4a_3x3_beta conv_in4b_1x1_weight "
	"conv_in4b_1x1_bias bn_in4b_1x1_gamma bn_in4b_1x1_beta conv_in4b_3x3_weight "
	"conv_in4b_3x3_bias bn_in4b_3x3_gamma bn_in4b_3x3_beta conv_in4c_1x1_weight "
	"conv_in4c_1x1_bias bn_in4c_1x1_gamma bn_in4c_1x1_beta conv_in4c_3x3_weight "
	"conv_in4c_3x3_bias bn_in4c_3x3_gamma bn_in4c_3x3_beta conv_in4d_1x1_weight "
	"conv_in4d_1x1_bias bn_in4d_1x1_gamma bn_in4d_1x1_beta conv_in4d_3x3_weight "
	"conv_in4d_3x3_bias bn_in4d_3x3_gamma bn_in4d_3x3_beta conv_in4e_conv_weight "
	"conv_in4e_conv_bias bn_in4e_conv_gamma bn_in4e_conv_beta conv_in5a_1x1_weight "
	"conv_in5a_1x1_bias bn_in5a_1x1_gamma bn_in5a_1x1_beta conv_in5a_3x3_weight "
	"conv_in5a_3x3_bias bn_in5a_3x3_gamma bn_in5a_3x3_beta conv_in5b_1x1_weight "
	"conv_in5b_1x1_bias bn_in5b_1x1_gamma bn_in5b_1x1_beta conv_in5b_3x3_weight "
	"conv_in5b_3x3_bias bn_in5b_3x3_gamma bn_in5b_3x3_beta fullyconnected0_weight "
	"fullyconnected0_bias bn_1_moving_mean bn_1_moving_var bn_in3a_1x1_moving_mean "
	"bn_in3a_1x1_moving_var bn_in3a_3x3_moving_mean bn_in3a_3x3_moving_var "
	"bn_in3b_1x1_moving_mean bn_in3b_1x1_moving_var bn_in3b_3x3_moving_mean "
	"bn_in3b_3x3_moving_var bn_in3c_conv_moving_mean bn_in3c_conv_moving_var "
	"bn_in4a_1x1_moving_mean bn_in4a_1x1_moving_var bn_in4a_3x3_moving_mean "
	"bn_in4a_3x3_moving_var bn_in4b_1x1_moving_mean bn_in4b_1x1_moving_var "
	"bn_in4b_3x3_moving_mean bn_in4b_3x3_moving_var bn_in4c_1x1_moving_mean "
	"bn_in4c_1x1_moving_var bn_in4c_3x3_moving_mean bn_in4c_3x3_moving_var "
	"bn_in4d_1x1_moving_mean bn_in4d_1x1_moving_var bn_in4d_3x3_moving_mean "
	"bn_in4d_3x3_moving_var bn_in4e_conv_moving_mean bn_in4e_conv_moving_var "
	"bn_in5a_1x1_moving_mean bn_in5a_1x1_moving_var bn_in5a_3x3_moving_mean "
	"bn_in5a_3x3_moving_var bn_in5b_1x1_moving_mean bn_in5b_1x1_moving_var "
	"bn_in5b_3x3_moving_mean bn_in5b_3x3_moving_var ";

const struct zoo_names zoo_names[] = {
	{"resnet", 20, resnet_20},
	{"resnet-v1", 20, resnet_v1_20},
	{"inception-bn", 0, inception_bn_small},
	{"inception-bn-28-small", 0, inception_bn_small},
};

const size_t zoo_n_names = sizeof zoo_names / sizeof *zoo_names;
